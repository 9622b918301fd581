"""Parameters from a YAML file, which maps names of a Study's parameters to values."""

from pathlib import Path
from typing import Any

import yaml

from msstab.study import StudyError


def read(path: Path) -> dict[str, Any]:
    """Return what a file maps to what, as YAML types it; `study.parse` checks names and values.

    Raises StudyError for a file that cannot be read, is not YAML, or does not map each name once.
    """
    try:
        text = path.read_text(encoding="utf-8")
        node, content = yaml.compose(text, yaml.SafeLoader), yaml.safe_load(text)
    except OSError as error:
        raise StudyError(
            f"{path}: {error.strerror}; name a YAML file of parameters, such as `seeds: 32`"
        ) from None
    except UnicodeDecodeError:
        raise StudyError(f"{path} is not text in UTF-8") from None
    except (yaml.YAMLError, ValueError) as error:
        raise StudyError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise StudyError(f"{path} must map names to values, for instance `seeds: 32`")
    names = [str(name.value) for name, _ in node.value]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        # YAML's readers would quietly take the last.
        raise StudyError(f"{path} names {', '.join(twice)} more than once")
    return {str(name): value for name, value in content.items()}
