"""Knowledge sources: facts, analogies and questions, in the formats that the field publishes."""

from lama_core.datasets.dataset import AnalogyDataset as AnalogyDataset
from lama_core.datasets.dataset import Dataset as Dataset
from lama_core.datasets.dataset import Dropped as Dropped
from lama_core.datasets.dataset import QuestionDataset as QuestionDataset
from lama_core.datasets.dataset import ReadReport as ReadReport
from lama_core.datasets.dataset import relation_objects as relation_objects
from lama_core.datasets.library.installed import analogy_names as analogy_names
from lama_core.datasets.library.installed import load_analogies as load_analogies
from lama_core.datasets.library.installed import load_dataset as load_dataset
from lama_core.datasets.library.installed import load_questions as load_questions
