"""What is wrong with a data set, row by row, before anything is asked of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from refadv_ablate.data.examining import Finding
from refadv_ablate.data.loading import Annotations
from refadv_ablate.types import Data


@dataclass(frozen=True, slots=True)
class DataReport:
    """Counts of a set and every finding with its id. form: how the annotations were stored."""

    name: str
    form: str
    rows: int
    examples: int
    images: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[str, int]:
        """Kind → number of rows, most frequent first."""
        return dict(Counter(finding.kind for finding in self.findings).most_common())

    @property
    def exclusion(self) -> str:
        """The override that leaves out every row at which a run would stop; empty where there is none."""
        kinds = sorted({finding.kind for finding in self.findings if finding.stops})
        return f"data.exclude=[{','.join(kinds)}]" if kinds else ""

    def text(self, most: int = 20) -> str:
        """The report as lines: counts, then up to `most` findings of each kind."""
        made = f"{self.examples} examples on {self.images} images"
        lines = [f"{self.name} (form {self.form}): {self.rows} rows, {made}"]
        for kind, number in self.counts.items():
            of_kind = [finding for finding in self.findings if finding.kind == kind]
            note = "stops a run" if of_kind[0].stops else "kept"
            lines.append(f"  {kind}: {number} ({note})")
            lines += [f"    {finding.id}: {finding.detail}" for finding in of_kind[:most]]
            if number > most:
                lines.append(f"    … and {number - most} more")
        lines += [f"  note: {note}" for note in self.notes]
        if self.exclusion:
            lines.append(f"  to leave them out, counted: {self.exclusion}")
        return "\n".join(lines)


def report(data: Data, decode: bool = True) -> DataReport:
    """Examines every row, whatever `data.exclude` says. decode: open each image to its last pixel.

    Raises UserError for a set that can't be read at all.
    """
    if not isinstance(data, Annotations):
        keys = [example.image.key for example in data]
        return DataReport(data.name, type(data).__name__, len(keys), len(keys), len(set(keys)), ())
    findings: list[Finding] = []
    images: set[str] = set()
    rows = examples = 0
    for example, finding in data.examined(decode):
        rows += 1
        if finding is not None:
            findings.append(finding)
        if example is not None:
            examples += 1
            images.add(example.image.key)
    return DataReport(data.name, data.chosen()[0], rows, examples, len(images), tuple(findings), data.notes)
