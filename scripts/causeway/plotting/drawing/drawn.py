"""The types of what is drawn and of frames, for annotations: who draws nothing does without matplotlib and pandas."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from pandas import DataFrame as DataFrame
else:
    Axes = DataFrame = Figure = Any
