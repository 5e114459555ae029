"""scikit-learn's manners without scikit-learn: parameters, fitted or not, predict, acquire. Its classes are imported when needed."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from frugal.models.acquire import Acquisition, acquire_classes, predict_classes
from frugal.models.costs import CostModel
from frugal.models.ensemble import Ensemble
from frugal.models.frontier import Point, shares, stop_at
from frugal.models.learners import points, reading
from frugal.models.learners.mistakes import penalties_of, weights_of_classes
from frugal.models.learners.parameters import (
    Aside,
    ClassWeights,
    Columns,
    Flag,
    check_parameters,
    learned,
    learner,
    parameter,
    parameters_of,
)
from frugal.models.learners.prepared import Prepared, Rows, seed_of
from frugal.models.learners.progress import Tell, silent
from frugal.models.schema import Schema
from frugal.models.table import Table, column_names, read_labels, read_table, read_weights

ENOUGH = 1000  # rows that importances are measured on
ELSEWHERE = ("costs", "categorical", "misclassification_cost", "n_jobs")  # parameters that a model has in another form, or not at all


@learner
class Learner:
    """A classifier that ends in an `ensemble_`. Subclasses declare their parameters and define `fit`.

    Fitted, it has `feature_importances_`, the share of the error and doubt that each feature's answers removed in training rows, and
    `feature_money_`, its share of what they paid.
    """

    name: ClassVar[str]  # on the wire and the command line
    summary: ClassVar[str]
    paper: ClassVar[str]
    costs: Any = parameter(
        Aside("a sequence of numbers, a mapping by column name, a CostModel, or None"),
        "price of each feature; 1 each by default",
        default=None,
        kw_only=True,
    )
    categorical: Any = parameter(Columns(), "columns of numbers to be taken as categories", default=None, kw_only=True)
    misclassification_cost: Any = parameter(
        Aside("a number, a mapping by the true label and then by the one that is said, a matrix of the same, or None"),
        "what a mistake costs: the label is then the one of least expected cost",
        default=None,
        kw_only=True,
    )
    class_weight: Any = parameter(
        ClassWeights(), 'how much a case of each class counts; "balanced": all classes alike, 1 each by default', default=None, kw_only=True
    )
    reader: bool = parameter(
        Flag(),
        "let a second ensemble, grown on cases as they are served, say what the answers mean; nothing is then decided before the end",
        default=False,
        kw_only=True,
    )
    points: bool = parameter(
        Flag(),
        "find operating points and calibrate told probabilities on rows that did not grow the trees: up to six times the work",
        default=False,
        kw_only=True,
    )
    n_jobs: int | None = parameter(
        Aside("a whole number other than 0, or None"),
        "threads: None is 1, -1 all cores; the model is the same for any number",
        default=None,
        kw_only=True,
    )
    random_state: Any = parameter(
        Aside("a whole number of at least 0, a RandomState, a Generator, or None"), "seed", default=None, kw_only=True
    )
    n_features_in_: int = learned()
    feature_names_in_: NDArray[Any] = learned()
    classes_: NDArray[Any] = learned()
    ensemble_: Ensemble = learned()
    expected_cost_: float = learned()
    feature_importances_: NDArray[np.float64] = learned()
    feature_money_: NDArray[np.float64] = learned()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in parameters_of(self)}

    def set_params(self, **parameters: Any) -> Self:
        known = self.get_params()
        unknown = [name for name in parameters if name not in known]
        if unknown:
            raise ValueError(f"Invalid parameter {unknown[0]!r} for {type(self).__name__}: valid ones are {', '.join(known)}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        values = [(each.name, getattr(self, each.name), each.default) for each in parameters_of(self)]
        changed = [f"{name}={value!r}" for name, value, default in values if repr(value) != repr(default)]
        return f"{type(self).__name__}({', '.join(changed)})"[:N_CHAR_MAX]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(allow_nan=True, categorical=True, string=True),
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row, every tree walked to its end."""
        codes = self._codes(X)
        return self.classes_[predict_classes(self.ensemble_, codes, self.n_jobs)[0]]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, in the order of `classes_`."""
        codes = self._codes(X)
        return predict_classes(self.ensemble_, codes, self.n_jobs)[1]

    def acquire(self, X: Any, budget: float | None = None, aim: float | None = None, confidence: float | None = None) -> Acquisition:
        """What sessions with these rows would have paid and said; a missing cell costs nothing.

        `budget` is a hard limit per row. `aim` is a mean cost over rows: the dearest operating point not above it says when to stop.
        `confidence` stops once the label's told probability reaches it, 1 never. With none of them a model with operating points stops by
        its default point, one without at the end of its trees.
        """
        codes = self._codes(X)
        stopping = stop_at(self.ensemble_.frontier, budget, aim, confidence)
        found = acquire_classes(self.ensemble_, codes, budget, stopping, n_jobs=self.n_jobs)
        return replace(found, labels=self.classes_[found.labels])

    @property
    def frontier_(self) -> tuple[Point, ...]:
        """The operating points by rising cost: `pandas.DataFrame(model.frontier_)` is a table of them."""
        self._check_fitted()
        if self.ensemble_.frontier is None:
            raise AttributeError(f"this {type(self).__name__} has no operating points: fit it with points=True")
        return self.ensemble_.frontier.points

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose label is right."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    def _read(self, X: Any, y: Any) -> tuple[Table, NDArray[np.int32]]:
        """Check and encode what `fit` was given; sets `n_features_in_`, `feature_names_in_` and `classes_`."""
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        table = read_table(X, self.categorical)
        labels = self._one_column(y)
        self.classes_, classes = read_labels(labels, len(table.codes))
        self.n_features_in_ = len(table.schema)
        names = column_names(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return table, classes

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        check_parameters(self)
        table, classes = self._read(X, y)
        weights = read_weights(sample_weight, len(classes))
        weights = weights * weights_of_classes(self.class_weight, self.classes_.tolist(), classes)[classes]
        schema, costs = self._priced(table.schema)
        penalties = penalties_of(self.misclassification_cost, self.classes_.tolist())
        rows = Rows(table.codes, classes, weights, len(self.classes_))
        self._hide_unsold(rows.codes, costs)
        if not weights.all():  # a row of weight 0 is a row that is not there
            kept = weights > 0
            rows = Rows(table.codes[kept], classes[kept], weights[kept], len(self.classes_))
        return Prepared(rows, schema, costs, penalties, seed_of(self.random_state))

    def _hide_unsold(self, codes: NDArray[np.float64], costs: CostModel) -> None:
        """Features that are never to be bought are missing in every row: no tree can ask for them."""
        unsold = [i for i, price in enumerate(costs.prices) if price.cost is None]
        if len(unsold) == len(costs) and unsold:
            raise ValueError("every feature is priced None, never to be bought: there is nothing to learn from")
        codes[:, unsold] = np.nan

    def _one_column(self, y: Any) -> Any:
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            warnings.warn(
                _sklearn("DataConversionWarning", UserWarning)("A column-vector y was passed when a 1d array was expected."), stacklevel=4
            )
            return labels[:, 0]
        if labels.ndim > 1:
            raise ValueError(f"y should be a 1d array, got an array of shape {labels.shape} instead.")
        return labels

    def _priced(self, schema: Schema) -> tuple[Schema, CostModel]:
        costs = CostModel.of(self.costs, schema.names)
        return schema.described_by(costs), costs

    def _check_fitted(self) -> None:
        if not hasattr(self, "ensemble_"):
            raise _sklearn("NotFittedError", ValueError)(f"This {type(self).__name__} instance is not fitted yet: call 'fit' first.")

    def _codes(self, X: Any) -> NDArray[np.float64]:
        self._check_fitted()
        self._same_names(column_names(X))
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        if len(shape) == 2 and shape[1] != self.n_features_in_:
            raise ValueError(f"X has {shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input.")
        return read_table(X, schema=self.ensemble_.schema).codes

    def _same_names(self, names: tuple[str, ...] | None) -> None:
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is None and names is not None:
            warnings.warn(f"X has feature names, but {type(self).__name__} was fitted without feature names", stacklevel=5)
        if fitted is not None and names is None:
            warnings.warn(f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names", stacklevel=5)
        if fitted is None or names is None or tuple(fitted) == names:
            return
        message = "The feature names should match those that were passed during fit.\n"
        unseen, lacking = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
        message += "Feature names unseen at fit time:\n" + "".join(f"- {name}\n" for name in unseen[:5]) if unseen else ""
        message += "Feature names seen at fit time, yet now missing:\n" + "".join(f"- {name}\n" for name in lacking[:5]) if lacking else ""
        if not unseen and not lacking:
            message += "Feature names must be in the same order as they were in fit.\n"
        raise ValueError(message)

    def _sureness(self, prepared: Prepared) -> str:
        """Operating points of a model whose mistakes have prices stop a case when little penalty is to be expected."""
        return "penalty" if self.points and prepared.penalties is not None else "label"

    def _again(self, prepared: Prepared, rows: Rows, tell: Tell = silent) -> Ensemble:
        """A model like the one that was fitted, grown on these rows; nobody reads for it yet."""
        raise NotImplementedError

    def _read_for(self, ensemble: Ensemble, prepared: Prepared, rows: Rows, tell: Tell = silent) -> Ensemble:
        """The same with a reader, if one is wanted."""
        if not self.reader or rows.count < 2:
            return ensemble
        return ensemble.with_settings(reader=reading.grow(ensemble, prepared, rows, self.n_jobs, tell=tell))

    def _points(self, ensemble: Ensemble, prepared: Prepared, rows: Rows, cap: float | None = None) -> dict[str, Any]:
        """A calibration and operating points, from models that are like this one, each judged on rows that did not grow it."""
        found = [
            (self._read_for(self._again(prepared, rows.some(kept)), prepared, rows.some(kept)), rows.some(judged))
            for kept, judged in points.folds(len(rows.codes), prepared.seed)
        ]
        return points.of_models(found, ensemble, prepared, getattr(self, "budget", None), cap, self.n_jobs)

    def _finish(self, ensemble: Ensemble, prepared: Prepared, rows: Rows, metrics: dict[str, float], **settings: Any) -> None:
        """Set what a fit leaves behind; `settings` are what makes told probabilities come true, and says when to stop."""
        parameters = {name: _plain(value) for name, value in self.get_params().items() if name not in ELSEWHERE}
        known = {name: value for name, value in metrics.items() if np.isfinite(value)}
        self.ensemble_ = ensemble.with_settings(
            learner=self.name, parameters=parameters, metrics={"held_out": known} if known else {}, **settings
        )
        walked = acquire_classes(self.ensemble_, rows.codes, to_leaves=True, n_jobs=self.n_jobs)
        self.expected_cost_ = float(np.average(walked.cost, weights=rows.weights))
        some = rows.some(np.random.default_rng((prepared.seed, 2**32 + 4)).permutation(len(rows.codes))[:ENOUGH])
        self.feature_money_, self.feature_importances_ = shares(self.ensemble_, some.codes, some.classes, some.weights)


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)


def _sklearn(name: str, otherwise: type[Exception]) -> Any:
    """scikit-learn's own exception class where it is installed: its tools look for that."""
    try:
        import sklearn.exceptions
    except ImportError:
        return otherwise
    return getattr(sklearn.exceptions, name)
