"""Errors a person can put right: each says what was expected, what came, what to do."""

from typing import Any, Self

from annotation.tasks.wording import PLAIN
from semsim.base.errors import SemsimError


class AnnotationError(SemsimError):
    """An error of the human study, which annotators may read in words of their study.

    Attributes:
        said: Which text of `tasks.wording` it is, and what that is filled in with, where annotators
            read it: a study may have another text there.
    """

    said: tuple[str, dict[str, Any]] = ("", {})

    @classmethod
    def of(cls, name: str, /, **values: Any) -> Self:
        """The error that the text "error.`name`" tells."""
        error = cls(PLAIN(f"error.{name}", **values))
        error.said = (f"error.{name}", values)
        return error


class StudyError(AnnotationError):
    """A study that cannot be made or used as asked; the message lists every problem found."""


class NotFoundError(AnnotationError):
    """A study, link, item, image or vote that does not exist."""


class SignInError(AnnotationError):
    """A name or password that does not open the study."""


class NotAllowedError(AnnotationError):
    """An item or image that was never given to this annotator."""


class AnswerError(AnnotationError):
    """An answer that the item does not offer."""


class TooQuickError(AnswerError):
    """An answer that came before an annotator can have looked; the same answer is refused again."""


class ConflictError(AnnotationError):
    """A request that contradicts what has already been stored."""


class NameTakenError(ConflictError):
    """A name that another annotator of the study has, who comes back by a link of their own."""


class AccountError(AnnotationError):
    """A name, a password or a start of the server that cannot be accepted as it is."""


class UnfitError(AnnotationError):
    """A text, a number or a time that no database can hold."""
