"""``askalike keys``: who may use a forum's service."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec.structs import asdict

from askalike.cli.arguments import ForumArgument, JsonOption, command
from askalike.cli.display import console, print_whole
from askalike.cli.messages import print_json, safe
from askalike.errors import SettingError
from askalike.server.guards import Keys
from askalike.store import ForumLayout, open_store
from askalike.store.layout import forum_names


def keys(
    forum: ForumArgument,
    add: Annotated[str, typer.Option("--add", help="Create a key for reading, or for writing (and reading).")] = "",
    name: Annotated[str, typer.Option("--name", help="Whose key it is; for people.")] = "",
    remove: Annotated[str, typer.Option("--remove", help="Revoke the key with this id.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Make, list and revoke the keys of a forum's service.

    The keys of a folder of forums are taken for each of them, beside its own.

    A key is shown once, when it is made; its hash alone is stored. A service that is running takes note at once.
    """
    if add and remove:
        raise SettingError("both of --add and --remove were given", "give one of them")
    if name and not add:
        raise SettingError("--name goes with --add alone", "say --add read or --add write")
    if not forum_names(forum):
        open_store(ForumLayout(forum)).close()  # there has to be a forum
    stored = Keys(forum)
    secret = ""
    if add:
        if add not in ("read", "write"):
            raise SettingError(f"a key cannot have the right to {add!r}", "expected read or write")
        key, secret = stored.add(name, "write" if add == "write" else "read")
    elif remove:
        stored.remove(remove)
    if as_json:
        print_json({"key": secret} | asdict(key) if add else stored.all())
    elif add:
        print_whole(secret)
        console.print(f"key {key.id} may {key.may}; it is not shown again", markup=False)
    else:
        listed = stored.all()
        if not listed:
            print_whole(f"no keys; {command('keys', forum, '--add', 'read')} makes one (or --add write)")
        for key in listed:
            console.print(f"{key.id}  {key.may:5}  {key.created}  {safe(key.name)}", markup=False)
