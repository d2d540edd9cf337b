"""What the tables of a run's configuration are made of."""

from typing import Annotated

from pydantic import ConfigDict, Field

from gametape.core.base_model import StrictModel

Positive = Annotated[float, Field(gt=0)]
AtLeastZero = Annotated[float, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]


class ConfigSection(StrictModel):
    """A table of the file. The text below a field is its documentation."""

    model_config = ConfigDict(use_attribute_docstrings=True)
