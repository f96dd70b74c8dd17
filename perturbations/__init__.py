"""Operators on one example: Example → Perturbed, and nothing else. One file per family."""

from perturbations.absent import Absent
from perturbations.base import Parts, Single
from perturbations.counterfactual import Counterfactual
from perturbations.deletion import DescriptorDeletion
from perturbations.fixed import Fixed, Identity, Repeat
from perturbations.from_file import FromFile
from perturbations.llm_rewriter import LLMRewriter
from perturbations.neighbours import EraseDistractors, Occlude, WrongImage
from perturbations.order import BagOfWords
from perturbations.paraphrase import Paraphrase
from perturbations.pictures import Blank, Mirror
from perturbations.quality import ImageQuality
from perturbations.rewriters import Descriptor, Extraction, Rewriter, Unanswered
from perturbations.spacy_rewriter import SpacyRewriter
from perturbations.subsets import Subsets
from perturbations.surface import CategoryOnly, LetterCase, Typos

__all__ = [
    "Absent",
    "BagOfWords",
    "Blank",
    "CategoryOnly",
    "Counterfactual",
    "Descriptor",
    "DescriptorDeletion",
    "EraseDistractors",
    "Extraction",
    "Fixed",
    "FromFile",
    "Identity",
    "ImageQuality",
    "LLMRewriter",
    "LetterCase",
    "Mirror",
    "Occlude",
    "Paraphrase",
    "Parts",
    "Repeat",
    "Rewriter",
    "Single",
    "SpacyRewriter",
    "Subsets",
    "Typos",
    "Unanswered",
    "WrongImage",
]
