"""Why nothing can be made for a TrainJob for now: a sentence for its user."""


class Obstacle(Exception):  # noqa: N818 - no defect: the cluster has something that is in the way
    """Told in the TrainJob's status and as an event, and tried again.

    With `passing`, it will be over by itself in a moment, and nobody needs to hear of it.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing
