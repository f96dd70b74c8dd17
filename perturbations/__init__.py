"""Operators on one example: Example → Perturbed, and nothing else. One file per family."""

from perturbations.base import Parts, Single
from perturbations.deletion import DescriptorDeletion
from perturbations.fixed import Fixed, Identity, Repeat
from perturbations.from_file import FromFile
from perturbations.llm_rewriter import LLMRewriter
from perturbations.neighbours import EraseDistractors, Occlude, WrongImage
from perturbations.order import BagOfWords
from perturbations.pictures import Blank, Mirror
from perturbations.quality import ImageQuality
from perturbations.rewriters import Descriptor, Extraction, Rewriter, Unanswered
from perturbations.spacy_rewriter import SpacyRewriter
from perturbations.surface import CategoryOnly, LetterCase, Typos

__all__ = [
    "BagOfWords",
    "Blank",
    "CategoryOnly",
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
    "Parts",
    "Repeat",
    "Rewriter",
    "Single",
    "SpacyRewriter",
    "Typos",
    "Unanswered",
    "WrongImage",
]
