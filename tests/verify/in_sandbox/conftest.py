"""A worker that serves the shop, once for each file that asks for it."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from gametape.verify.in_sandbox import proxy
from tests.verify.in_sandbox.shop import CLASSES, CODE, load
from tests.verify.in_sandbox.worker_process import serving, write_code


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    root = tmp_path_factory.mktemp("code")
    write_code(root, CODE)
    modules = ["shop.goods", "tools", "stars", "broken", "wrong", "rude"]
    with serving() as sock:
        proxy.install_proxy(sock, modules, CLASSES, [str(root)])
        yield
    sys.meta_path.pop(0)
    for name in ["shop", *modules]:
        sys.modules.pop(name, None)


@pytest.fixture
def tools(served: None) -> Any:
    return load("tools")


@pytest.fixture
def goods(served: None) -> Any:
    return load("shop.goods")
