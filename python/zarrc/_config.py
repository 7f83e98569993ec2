"""`zarrc.config`: what stores and arrays that are opened from now on use."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ._consolidation import flush
from ._settings import check_setting, read_initial, settings


class _Change:
    """What `config.set` returns; as a context manager it takes the change back."""

    def __init__(self, config: Config, before: dict[str, Any]) -> None:
        self._config, self._before = config, before

    def __enter__(self) -> Config:
        return self._config

    def __exit__(self, *unused: object) -> None:
        _change(self._before)


def _change(values: Mapping[str, Any]) -> dict[str, Any]:
    """Changes settings, and returns those before. Whatever ends the setting "end" of `consolidate` is the end of its changes."""
    before = settings.change(values)
    if before["consolidate"] == "end" != settings.values["consolidate"]:
        flush()
    return before


class Config:
    """Settings, by name. Arrays and stores keep what was set when they were opened."""

    def get(self, name: str, default: object = None) -> Any:
        return self[name] if name in settings.values else default

    def __getitem__(self, name: str) -> Any:
        """What is set, else what the environment says; None: neither, so the default counts."""
        return settings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(settings.values)

    def set(self, values: Mapping[str, Any] | None = None, **more: object) -> _Change:
        """Changes settings, or changes them inside the block when used as a context manager.

        Arrays and stores that are open keep the settings of the time when they were opened.

        Parameters
        ----------
        values : mapping, optional
            New values by the names of the settings. None sets the default.
        **more
            The same, for settings whose names are identifiers.

        Returns
        -------
        context manager
            Its exit restores the settings.

        Raises
        ------
        KeyError
            There is no setting of this name.
        ValueError
            The setting does not take this value.

        Examples
        --------
        >>> with zarrc.config.set({"max_threads": 2, "array.order": "F"}):
        ...     zarrc.config["max_threads"]
        2
        >>> zarrc.config.set(max_threads=0)
        Traceback (most recent call last):
        ValueError: max_threads: 0 is not a number from 1 to 65535
        """
        checked = {name: check_setting(name, value) for name, value in {**(values or {}), **more}.items()}
        before = _change(checked)
        return _Change(self, {name: before[name] for name in checked})

    def reset(self) -> None:
        """Goes back to the settings of the environment and of the user's file."""
        _change(read_initial())

    def __repr__(self) -> str:
        rows = ", ".join(f"{name!r}: {self[name]!r}" for name in self)
        return f"<zarrc.config {{{rows}}}>"


config = Config()
