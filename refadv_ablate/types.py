"""The core types: the architecture on one page.

    Data ▶ Example ▶ Operator ▶ Perturbed ▶ prompt ▶ Request ▶ Model ▶ Reply ▶ parse ▶ Reading ▶ Record
    Record* ▶ stats.compare(original, perturbed) ▶ Comparison ▶ report · MLflow

Each arrow is a pure function or an object with one method. Values are frozen; none knows Hydra,
MLflow or torch.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from refadv_ablate.boxes import SAME_FRAME, Box, BoxMap, Quad, Size

if TYPE_CHECKING:
    from PIL import Image

Json = Any
"""Anything that json.dumps takes; NaN and infinity excepted."""

EMPTY: Mapping[str, Json] = MappingProxyType({})
ORIGINAL = "original"
"""Name of the condition in which the expression is as the data has it."""
ORIGINAL_OR_NONE = "original_or_none"
"""The same with a prompt that allows the answer "none": the other half of what has to be rejected."""


# ── data ────────────────────────────────────────────────────────────────────────────────────────


@runtime_checkable
class ImageRef(Protocol):
    """An image that is opened when it is needed and not before."""

    @property
    def key(self) -> str:
        """What examples on the same image share; clusters of the inference. A file name, an id."""

    def size(self) -> Size:
        """Width and height of the stored pixel grid, without decoding where the format allows."""

    def load(self) -> Image.Image:
        """Mode RGB, stored pixel grid. Raises ImageUnreadable."""

    def digest(self) -> str:
        """SHA-256 of the stored bytes (of the drawing's description for a drawn image)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An instance that could be meant: what SoM marks and baselines choose from."""

    box: Box
    category: str | None = None
    attributes: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Example:
    """One expression on one image with the box of its referent.

    `candidates` are the annotated instances of the image, the referent among them where known;
    `distractors` counts the other instances of the referent's category. None means unknown.
    """

    id: str
    image: ImageRef
    expression: str
    target: Box
    category: str | None = None
    candidates: tuple[Candidate, ...] = ()
    distractors: int | None = None
    negation: bool | None = None
    source: str | None = None
    split: str | None = None
    attributes: Mapping[str, Json] = field(default_factory=dict)

    def saying(self, expression: str) -> Example:
        """The same case with another expression."""
        return replace(self, expression=expression)


@runtime_checkable
class Data(Protocol):
    """A data set: iterated lazily, in a fixed order, more than once."""

    @property
    def name(self) -> str:
        """As tables show it, such as `refcoco_val_unc`: the split is part of the name."""

    def __iter__(self) -> Iterator[Example]:
        """Examples in their stored order, each id once. Raises UserError for files it can't read."""

    def fingerprint(self) -> Mapping[str, Json]:
        """What determines the examples: source, split, file digests or seed. JSON."""


@dataclass(frozen=True, slots=True)
class NoTarget:
    """An expression of a data set that nothing on an image matches, such as its authors' negatives.

    image: key of the image, as the examples on it have it. of: id, in the authors' files, of the expression
    that it was made from; "" where it stands for itself. kind: what makes it false, where they say.
    """

    image: str
    expression: str
    of: str = ""
    kind: str = ""


@runtime_checkable
class HasNoTargets(Protocol):
    """Data that know of expressions without a referent."""

    def no_targets(self) -> Iterator[NoTarget]:
        """In stored order. Raises UserError for files that can't be read."""


# ── perturbation ────────────────────────────────────────────────────────────────────────────────

Status = Literal["changed", "unchanged", "not_perturbable"]

Expectation = Literal["drop", "invariant", "directional", "reject"]
"""What a model that understands does with the perturbed question.

drop: no right answer is expected, only less of them. invariant: the same referent, in the other frame.
directional: another referent, whose box is the target of the perturbed example. reject: nothing matches.
"""


@dataclass(frozen=True, slots=True)
class Perturbed:
    """An example after an operator: `example` is what is asked, `original` what it came from.

    The new example may have another expression, image, target and other candidates; its boxes are in
    pixels of its own image. `frame` says where a box of the original image lies in the new one.

    unchanged: the operator ran and neither text nor image differ (it is asked and counted).
    not_perturbable: no perturbed question exists (it is not asked, and counted).
    part: which of an operator's labelled sub-conditions this is, such as `jpeg-3`; "" where it has none.
    placebo: a sub-condition that the others are compared with, left out of the operator's own Δ.
    """

    example: Example
    original: Example
    status: Status
    reason: str = ""
    trace: Mapping[str, Json] = field(default_factory=dict)
    expectation: Expectation = "drop"
    frame: BoxMap = SAME_FRAME
    part: str = ""
    placebo: bool = False


class Operator(Protocol):
    """A perturbation of the question. Pure: depends on example and generator alone.

    What an operator may have besides, each read with `getattr` where it matters:
    `repeat` (bool): the same request is asked again, past the store.
    `or_none` (bool): its question and the original beside it allow the answer "none".
    `perturb_parts`: it asks an example in labelled sub-conditions; see `Parted`.
    `with_data`: it needs the data set; see `NeedsData`.
    """

    @property
    def draws(self) -> int:
        """How many independent perturbations of one example are asked (1 unless it is random).

        0 for a `Parted` operator: as many as an example has sub-conditions.
        """

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """Keeps the id."""

    def perturb_many(self, items: Iterable[tuple[Example, random.Random]]) -> Iterator[Perturbed]:
        """As `perturb`, in the same order, for a whole stream: parsers and LLMs work in batches."""

    def identity(self) -> Mapping[str, Json]:
        """What determines the texts besides example and generator: class, fields, versions. JSON."""


@runtime_checkable
class Parted(Protocol):
    """An operator that asks one example in several labelled ways, which may differ by example."""

    def perturb_parts(
        self, items: Iterable[tuple[Example, random.Random]]
    ) -> Iterator[tuple[Perturbed, ...]]:
        """All sub-conditions of each example, in the same order; at least one, if only to say why none."""


@runtime_checkable
class NeedsData(Protocol):
    """An operator that draws on other examples than the one that it changes."""

    def with_data(self, data: Data) -> Operator:
        """The same operator with the data at hand; reads nothing of it yet."""


# ── asking ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Message:
    """A turn of a chat. Parts are text or an image, in the order in which they are sent."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[str | ImageRef, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the answer is decoded, on every engine alike; temperature 0 is greedy.

    repetition_penalty: factor against tokens that stand in prompt or answer already; 1 is none. It is
    declared here and not taken from the checkpoint, since engines differ in whether they look there.
    top_k: draw among so many tokens; 0 is all of them.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None
    max_new_tokens: int = 512
    repetition_penalty: float = 1.0
    top_k: int = 0

    def declared(self) -> dict[str, Json]:
        """All fields. JSON."""
        return asdict(self)

    def key(self) -> dict[str, Json]:
        """Its part of the store's key: a field that stored answers came before is left out at its default."""
        later = {"repetition_penalty": 1.0, "top_k": 0}
        return {name: value for name, value in asdict(self).items() if later.get(name, ...) != value}


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model. `image` is the image as it is sent (marked or resized already)."""

    perturbed: Perturbed
    condition: str
    draw: int
    messages: tuple[Message, ...]
    image: ImageRef
    sampling: Sampling
    repeat: int = 0
    """More than 0 asks the same thing again, past the store: the noise-floor arm."""
    options: Mapping[str, Json] = field(default_factory=dict)
    """What else changes the answer: thinking switch, template arguments, detector thresholds. JSON."""

    @property
    def id(self) -> str:
        """Unique within a run."""
        return f"{self.perturbed.example.id}|{self.condition}|{self.draw}"


@dataclass(frozen=True, slots=True)
class Seen:
    """Sizes (width, height) of the image: stored, as sent by us, as the processor made it if known."""

    original: Size
    sent: Size
    processed: Size | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost. output_tokens: all that were generated, the end token among them."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Natural logarithms of the probabilities of an answer's tokens, each given all before it.

    Of the model's own distribution, before temperature, top_p and penalties, where the engine tells it
    apart. The first token's characters begin at `start` of the reply's text; the others follow.
    """

    start: int = 0
    chars: tuple[int, ...] = ()
    """Characters of the text that each token makes; 0 for a token that only begins a character."""
    values: tuple[float, ...] = ()
    lacks: str = ""
    """Why there are none although they were asked for; such an answer isn't asked again."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure a model is of its answer, from 0 to 1: a detector's own score, or what its tokens say.

    value: the score, or the geometric mean of the probabilities of the tokens that hold the answer.
    joint, least: their product and the smallest; None for a score. tokens: how many; 0 for a score.
    """

    value: float
    joint: float | None = None
    least: float | None = None
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. finish "error": the model never answered; `error` says why; never scored."""

    text: str
    finish: Literal["stop", "length", "refused", "error"] = "stop"
    reasoning: str = ""
    error: str = ""
    processed: Size | None = None
    usage: Usage = Usage()
    seconds: float = 0.0
    attempts: int = 1
    engine: str = ""
    """What answered, with its version, such as "vllm 0.32.0"; "" where that isn't known."""
    decoding: Mapping[str, Json] = field(default_factory=dict, hash=False)
    """The fields of Sampling as they were set for this answer; empty where that isn't known."""
    logprobs: TokenLogprobs | None = None
    """None where they were not asked for."""
    confidence: Confidence | None = None
    """What the engine itself gives for the answer as a whole, such as a detector's score."""


class Model(Protocol):
    """Requests in, replies out, in any order; batching and concurrency are its own business."""

    def identity(self) -> Mapping[str, Json]:
        """What determines an answer besides the request: checkpoint, revision, engine, dtype. JSON.

        It is part of the store's key and of the log: no secret, nothing that varies by machine.
        """

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Pulls requests lazily, yields each once. One example's failure is a Reply, not an exception;

        raises ModelUnavailable when nothing can be answered any more.
        """

    def close(self) -> None:
        """Frees memory and connections; may be called twice."""


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class NoBox:
    """An answer without a box. A backend failure is not an answer and never becomes a NoBox.

    none: the answer says that nothing matches, to a prompt that allows it; without such a prompt the
    same words are `empty`, `unparsable` or `refused`.
    """

    kind: Literal["empty", "unparsable", "refused", "truncated", "none"]
    reason: str = ""


class Dialect(Protocol):
    """The answer format of a family: text → the numbers written in it."""

    def read(self, text: str) -> tuple[Quad, ...] | NoBox:
        """All boxes of the final answer, in order. Total: any string gives one or the other."""


class Frame(Protocol):
    """The coordinate frame of a family: numbers → Box in pixels of the original image."""

    def to_pixels(self, quad: Quad, seen: Seen) -> tuple[Box | NoBox, tuple[str, ...]]:
        """The box, and notes among: clipped, swapped, scale_contradiction."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A reply, read: the box that is scored (the first), how many there were, and what was noticed."""

    answer: Box | NoBox
    n_boxes: int = 0
    raw: Quad | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float = 0.0
    output: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model as its authors prescribe it: how it is asked and how it is read, on any engine.

    prompts: style (direct, cot, …) → text file under conf/prompt_text/.
    engine_options: engine name → options only that engine takes.
    image_options: how the image is encoded for sending: image_format (png, jpeg), image_quality.
    limits: the size at which an image is sent that the family's processor would refuse; None: any size.
    logprobs: whether an engine is asked for the log-probabilities of the answer's tokens.
    """

    name: str
    checkpoint: str
    dialect: Dialect
    frame: Frame
    prompts: Mapping[str, str]
    sampling: Sampling = Sampling()
    revision: str | None = None
    system: str | None = None
    image_first: bool = True
    lowercase: bool = False
    thinking: bool | None = None
    template_options: Mapping[str, Json] = field(default_factory=dict)
    resize: Resize | None = None
    resize_before_sending: bool = False
    limits: Resize | None = None
    price: Price = Price()
    trust_remote_code: bool = False
    engine_options: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    image_options: Mapping[str, Json] = field(default_factory=dict)
    logprobs: bool = False


class Resize(Protocol):
    """A processor's own resize rule."""

    def __call__(self, size: Size) -> Size:
        """(width, height) that the model sees for an image of this (width, height).

        Raises ImageUnreadable for one that it can't take.
        """


# ── results ─────────────────────────────────────────────────────────────────────────────────────

Outcome = Literal["box", "empty", "unparsable", "refused", "truncated", "missing", "not_perturbable", "none"]
"""missing: the model never answered (excluded and counted). The NoBox kinds score IoU 0."""


@dataclass(frozen=True, slots=True)
class Record:
    """One scored answer: a line of predictions.jsonl. Boxes in pixels of the image that was asked about,

    which is the original one unless `picture` says otherwise.
    """

    example_id: str
    image_key: str
    condition: str
    draw: int
    status: Status
    expression: str
    original_expression: str
    target: Box
    outcome: Outcome
    predicted: Box | None = None
    iou: float | None = None
    reason: str = ""
    n_boxes: int = 0
    notes: tuple[str, ...] = ()
    size: Size = (0, 0)
    text: str = ""
    reasoning: str = ""
    usage: Usage = Usage()
    attempts: int = 1
    engine: str = ""
    """As Reply.engine."""
    category: str | None = None
    distractors: int | None = None
    negation: bool | None = None
    source: str | None = None
    split: str | None = None
    attributes: Mapping[str, Json] = field(default_factory=dict)
    trace: Mapping[str, Json] = field(default_factory=dict)
    expectation: Expectation = "drop"
    part: str = ""
    placebo: bool = False
    frame: BoxMap = SAME_FRAME
    """From the original image to the one that was asked about, whose pixels the boxes are in."""
    original_target: Box | None = None
    """Where the original's referent lies in the image that was asked about, if that is not the target."""
    picture: Mapping[str, Json] = field(default_factory=dict)
    """How the image that was asked about is made: `edits`, and the key `of` another image; or empty."""
    or_none: bool = False
    """Whether the prompt allowed the answer "none"."""
    landed: str = ""
    """Where the answer lies, such as on a distractor of the same category; empty where nobody looked."""
    image_digest: str = ""
    """Start of the SHA-256 of the image's content, which tells images apart whatever they are called."""
    confidence: Confidence | None = None
    """In the answer; None where nothing tells it, which is not a confidence of 0."""

    @property
    def image(self) -> str:
        """What clusters examples: the image's content where it is known, else its key."""
        return self.image_digest or self.image_key


@dataclass(frozen=True, slots=True)
class Estimate:
    """A fraction (0…1, a Δ −1…1) with its 95% interval; None where it can't be had, `note` says why."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    images: int
    method: str = ""
    note: str = ""
    effective: float | None = None
    """Images of one size that would weigh as these do, (Σs)²/Σs² over the examples on each."""
    df: float | None = None
    """Degrees of freedom of the interval."""


@dataclass(frozen=True, slots=True)
class Delta:
    """Original against perturbed for one metric, on the same examples. delta = perturbed − original."""

    metric: str
    original: Estimate
    perturbed: Estimate
    delta: Estimate
    bootstrap: tuple[float, float] | None = None
    p: float | None = None
    """Cluster sign-flip over images; never 0."""
    p_mcnemar: float | None = None
    """Exact McNemar; ignores clustering."""
    p_holm: float | None = None
    right_to_wrong: float = 0.0
    wrong_to_right: float = 0.0
    draw_sd: float | None = None
    """Standard deviation of Δ over draws, for operators with several."""
    note: str = ""


METRICS: tuple[str, ...] = ("acc50", "acc75", "acc90", "macc")
"""Acc at IoU ≥ 0.5, 0.75, 0.9, and the mean over 0.50:0.05:0.95."""


@dataclass(frozen=True, slots=True)
class Score:
    """One number of the understanding profile, such as the consistency under `mirror`, with its interval.

    expectation: of the questions that it is about. part: the sub-condition that it is of; "" for all of
    them. chance: what blind choice among the candidates gives, where that is known. The definitions are in
    docs/understanding.md.
    """

    name: str
    expectation: Expectation
    estimate: Estimate
    part: str = ""
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """The same comparison on a part of the examples, such as distractors 4–6."""

    by: str
    label: str
    deltas: Mapping[str, Delta]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one cell (model × data × prompt × operator) found."""

    model: str
    data: str
    prompt: str
    operator: str
    planned: int
    """Examples of the plan; each pairs with itself."""
    paired: int
    """Examples answered in both conditions: what every number here is over."""
    images: int
    deltas: Mapping[str, Delta]
    """By metric; unparsed answers are misses (primary)."""
    parsed_only: Mapping[str, Delta]
    """By metric, on examples parsed in both conditions (secondary)."""
    counts: Mapping[str, Mapping[str, int]]
    """Arm ("original", "perturbed") → outcome, note or status → how many."""
    slices: Sequence[Slice] = ()
    scores: tuple[Score, ...] = ()
    """Beyond accuracy, as the operator's expectation defines them."""
    warnings: tuple[str, ...] = ()
    variant: str = ""
    """What else tells this cell from others beside it, such as `seed 1`; empty where nothing does."""
    details: Mapping[str, Json] = field(default_factory=dict)
    """Anything else of the cell: tokens, usd, candidate recall, chance level, seconds."""
