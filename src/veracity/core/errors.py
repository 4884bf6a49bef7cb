"""What goes wrong in a way a user can mend."""


class VeracityError(Exception):
    """One sentence or two: what was expected, what was seen, what to do."""


class DataError(VeracityError):
    """Data that cannot be read, or that contradict themselves."""


class ModelError(VeracityError):
    """A model that cannot be loaded, lacks an ability, or answers nonsense."""


class BudgetSpent(ModelError):
    """A model that may not be asked any more; what it answered is kept."""


class PluginError(VeracityError):
    """A name or a setting that no plug-in answers to."""


class RunError(VeracityError):
    """A run on disk that cannot be written, read or continued."""


class LimitError(VeracityError):
    """Something larger than is taken in unasked; the sentence names what sets the limit."""


class MissingExtra(VeracityError):
    """An optional package that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(package, extra, purpose)  # all three, so that it survives pickling

    def __str__(self) -> str:
        package, extra, purpose = self.args
        return (
            f"{purpose} needs the package {package!r}, which is not installed: "
            f"pip install 'veracity[{extra}]'"
        )
