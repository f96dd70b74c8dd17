"""The command line: compose → run → table. Also the door to the other commands.

Nothing heavy is imported before it is known to be needed, so that `--help` and a mistake answer at once.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType

from refadv_ablate import __version__, assets
from refadv_ablate.errors import FULL, UserError, closest, nearest, printable, unwritten
from refadv_ablate.masking import censored, learn_words, mask_logs, masked

PROGRAM = "refadv-ablate"
FLAGS = ("-m", "--multirun", "-h", "--help", "--version", "-c", "--cfg", "--dry-run")
INTERRUPTED = 130
WIDE = 100
"""Columns of a line of help."""
DISK = (errno.EACCES, errno.EPERM, errno.EROFS, *FULL)
"""What a disk says that a person must mend."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 a cell failed or is incomplete, 2 a mistake in the command, 130 stopped."""
    words = list(sys.argv[1:] if argv is None else argv)
    learn_words(words)
    mask_logs()
    _Stop.first = None
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _Stop())
    try:
        return _dispatch(words)
    except UserError as error:
        print(f"{PROGRAM}: {printable(censored(str(error)))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\n{PROGRAM}: stopped; answers so far are kept, the same command goes on:", file=sys.stderr)
        print(f"  {_command(words)}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in DISK:
            raise
        print(f"{PROGRAM}: {unwritten(error.filename or 'a file', error)}", file=sys.stderr)
        return 2


class _Stop:
    """The first signal stops the command, which puts its things in order; one that follows changes nothing.

    Within a second it is the same stop (a shell signals the whole group, a scheduler its job); a later one
    ends the process at once, with the same status. Answers are stored as they come, so none is lost.
    """

    first: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if _Stop.first is None:
            _Stop.first = now
            raise KeyboardInterrupt
        if now - _Stop.first > 1:
            os._exit(INTERRUPTED)


def _command(words: Sequence[str]) -> str:
    return censored(shlex.join(["python", "-m", "refadv_ablate", *words]))


def _dispatch(words: list[str]) -> int:
    flags = [word for word in words if word.startswith("-") and "=" not in word]
    for flag in flags:
        if flag not in FLAGS:
            raise UserError(f"unknown option {flag!r}; {nearest(flag, FLAGS)}")
    rest = [word for word in words if word not in flags]
    if "--version" in flags:
        print(f"{PROGRAM} {__version__}")
        return 0
    command = rest.pop(0) if rest and "=" not in rest[0] and not rest[0].startswith(("~", "+")) else None
    asked = bool({"-h", "--help"} & set(flags))
    if asked and command in (*assets.GROUPS, *assets.RECIPES):
        print(group_help(str(command)))
        return 0
    if command is not None and command not in commands():
        owner = next((name for name in commands() if command in _actions(name)), "")
        meant = f"did you mean `{owner} {command}`?" if owner else nearest(command, commands())
        raise UserError(f"there is no command {command!r}; {meant}; or give key=value words to run")
    if asked:
        print(help_text(command))
        return 0
    if command is not None:
        return _run_command(command, rest)
    multirun = bool({"-m", "--multirun"} & set(flags))
    _check(rest, multirun)
    rest = assets.with_data(rest)
    if {"-c", "--cfg"} & set(flags):
        from omegaconf import OmegaConf

        composed = OmegaConf.to_container(assets.compose(rest))
        print(OmegaConf.to_yaml(OmegaConf.create(masked(composed))), end="")
        return 0
    return _sweep(rest, multirun, dry="--dry-run" in flags)


# ── help ────────────────────────────────────────────────────────────────────────────────────────


def commands() -> dict[str, str]:
    """Command → what it does: the first comment of conf/command/NAME.yaml; its module is commands/NAME.py."""
    return assets.options("command")


def help_text(command: str | None = None) -> str:
    """Commands, config groups and their options, one line each; or the keys of one command."""
    if command is not None:
        return _command_help(command)
    lines = [
        f"{PROGRAM} {__version__}: original against perturbed accuracy of referring expression comprehension",
        "",
        "  python -m refadv_ablate perturb=bow model=internvl3          one run",
        "  python -m refadv_ablate 'perturb=[bow,fixed]'                   several operators, one original",
        "  python -m refadv_ablate -m perturb=bow,fixed model=a,b       a sweep over every combination",
        "  python -m refadv_ablate COMMAND key=value …                  one of the commands below",
        "",
        "options: -m sweep · --cfg print the composed config · --dry-run list the cells · --version · --help",
        "",
        "commands:",
        *(f"  {name:<22} {about}" for name, about in commands().items()),
    ]
    lines += ["", "what a run is made of (--help GROUP lists a group with a line on each option):"]
    for group in (*assets.GROUPS, *assets.RECIPES):
        lines.append(_shortened(group, list(assets.options(group))))
    lines += ["", "other keys, with their defaults:", *_own_keys()]
    return "\n".join(lines)


def _shortened(group: str, names: list[str]) -> str:
    """A group and as many of its options as fit on a line."""
    shown = [name for name in names if "/" not in name]
    while len(text := f"  {group + '=':<22} {', '.join(shown)}") > WIDE:
        shown.pop()
    return text if len(shown) == len(names) else f"{text} … ({len(names)} in all)"


def group_help(group: str) -> str:
    """Every option of a config group, one line each."""
    known = assets.options(group)
    wide = max(map(len, known), default=0)
    about = [f"  {name:<{wide}}  {line}" for name, line in known.items()]
    return "\n".join([f"{group}= takes:", "", *about])


def _actions(command: str) -> list[str]:
    """The actions of a command that has several: its first key, with their names in its comment."""
    path = assets.asset_dir("conf") / "command" / f"{command}.yaml"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = re.search(r"^action:.*\n(?:\s+#.*\n)*", text, re.MULTILINE)
    comments = re.findall(r"#(.*)", found[0]) if found else []
    return re.findall(r"(?:^|[;,]) ?(\w+):", "\n".join(comments), re.MULTILINE)


def _own_keys() -> list[str]:
    text = (assets.asset_dir("conf") / "config.yaml").read_text(encoding="utf-8")
    lines = text.split("robustness: null")[1].split("hydra:")[0].strip().splitlines()
    return [f"  {line}" for line in lines]


def _command_help(command: str) -> str:
    path = assets.asset_dir("conf") / "command" / f"{command}.yaml"
    body = path.read_text(encoding="utf-8").rstrip() if path.exists() else ""
    head = f"python -m refadv_ablate {command} key=value …: {commands()[command]}"
    return f"{head}\n\n{body}\n\nand every key of the main job"


# ── commands ────────────────────────────────────────────────────────────────────────────────────


def _run_command(command: str, words: list[str]) -> int:
    """Composes the config with the command's own keys under `command`; `key=` means `command.key=`."""
    from omegaconf import OmegaConf

    path = assets.asset_dir("conf") / "command" / f"{command}.yaml"
    own = {str(key) for key in OmegaConf.load(path)} if path.exists() else set()
    module = importlib.import_module(f"refadv_ablate.commands.{command}")
    overrides = [f"+command={command}"] if path.exists() else []
    for index, word in enumerate(words):
        key = word.split("=", 1)[0]
        if index == 0 and "=" not in word:
            if word not in (known := _actions(command)):
                does = f"it takes {', '.join(known)}" if known else "it takes key=value words"
                raise UserError(f"{command} has no {word!r}; {does}; see `{command} --help`")
            overrides.append(f"command.action={word}")
        else:
            overrides.append(f"command.{word}" if key.split(".")[0] in own else word)
    _check_own(command, words, own)
    assets.check(overrides)
    overrides = assets.with_data(overrides)
    config = assets.compose(overrides)
    result: int = module.run(config)
    return result


def _check_own(command: str, words: Sequence[str], own: set[str]) -> None:
    """Raises UserError for a word that is no key at all and nearly one of the command's."""
    from omegaconf import OmegaConf

    config = OmegaConf.load(assets.asset_dir("conf") / "config.yaml")
    known = own | {str(key) for key in config} | {*assets.GROUPS, *assets.RECIPES}
    for word in words:
        key = word.split("=", 1)[0]
        if "=" in word and key.isidentifier() and key not in known and closest(key, own):
            raise UserError(f"{command} has no key {key!r}; {nearest(key, own)}")


# ── the main job ────────────────────────────────────────────────────────────────────────────────


def _check(words: Sequence[str], multirun: bool) -> None:
    for override in assets.parse(words):
        key = override.key_or_group
        if override.is_sweep_override() and not multirun:
            raise UserError(
                f"{override.input_line} names several values; add -m to sweep"
                + (
                    f", or write '{key}=[{','.join(assets.values(override))}]' for all in one run"
                    if key in assets.MERGED
                    else ""
                )
            )
        if key in ("hydra/launcher", "hydra/sweeper") and not multirun:
            raise UserError(f"{key} has no effect without -m; add -m, or leave it out")
    assets.check(assets.sweep_params(words) if multirun else words)


def _sweep(words: list[str], multirun: bool, dry: bool) -> int:
    from refadv_ablate.running import launch

    return launch.run(words, multirun, _command([*(["-m"] if multirun else []), *words]), dry)
