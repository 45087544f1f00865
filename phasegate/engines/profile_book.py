"""The profiles of a project: its own, from ``fixtures/engines``, before those that ship with the package.

A file with the name of a profile that ships changes it key by key; ``extends`` builds a profile of another name on one;
a file with neither stands by itself. What is left out stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from phasegate.core.settings_file import Located, SettingsError, load_mapping
from phasegate.engines.profile import EngineProfile, profile_of, profiles, shipped

FOLDER = Path("fixtures") / "engines"
"""Where a project keeps its own profiles."""


def read_profiles(folder: Path) -> tuple[EngineProfile, ...]:
    """A project's own profiles, and after them those that ship and were not changed.

    Raises:
        SettingsError: a file cannot be used; one line naming the value, the place and the remedy.
    """
    bases = {str(given.values["name"]): given for given in shipped()}
    own: dict[str, EngineProfile] = {}
    for path in sorted(folder.glob("*.yaml")):
        profile = profile_of(_built(_read(path), bases))
        if profile.name in own:
            raise SettingsError(f"{path}: another file here is called {profile.name!r}, too; names must differ")
        own[profile.name] = profile
    return (*own.values(), *(one for one in profiles() if one.name not in own))


def _read(path: Path) -> Located:
    try:
        return load_mapping(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise SettingsError(f"{path}: cannot read the profile: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: not a text file in UTF-8") from None


def _built(given: Located, bases: Mapping[str, Located]) -> Located:
    """The file's keys over those of the profile it builds on, if any."""
    name = given.require("name")
    extended = given.values.get("extends", name)
    base = bases.get(extended) if isinstance(extended, str) else None
    if base is None and "extends" in given.values:
        known = ", ".join(sorted(bases))
        raise SettingsError(f"{given.where('extends')}: extends is {extended!r}; it must be one of {known}")
    own = {key: value for key, value in given.values.items() if key != "extends"}
    inherited = {} if base is None else dict(base.values)
    if base is not None and base.values["name"] != name:
        # What tells one server from another is not handed down to a server of another name.
        inherited = {key: value for key, value in inherited.items() if key not in ("detect", "engines", "title")}
    return Located({**inherited, **own}, given.lines, given.source)
