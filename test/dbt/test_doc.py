"""Does all that doc/dbt.md says, in a fresh folder."""

import os
import pathlib

import pytest
import warehouse
from walk import Walk

TOP = pathlib.Path(__file__).parents[2]


# dbt starts some twenty times
@pytest.mark.timeout(900)
def test_doc(template, tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (tmp_path / "idempotent_load").symlink_to(TOP)
    with warehouse.fresh(template, "doc_dbt") as database:
        database.run("DROP EXTENSION idempotent_load")
        walk = Walk(folder, {**os.environ, "PGDATABASE": database.database})
        assert walk.walk(TOP / "doc" / "dbt.md") == 19
