"""Small files in every format that is read, and what they are read as; ``python tests/file_table.py`` writes the page.

``tests/data/test_file_table.py`` reads each of them, and checks that the page has the same table.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "files.md"

GREY = (np.arange(48) * 5).reshape(6, 8).astype(np.uint8)  # 0 to 235
TOP = 235 / 255
CAMERA = np.linspace(0, 4000, 48).reshape(6, 8).astype(np.uint16)  # 12 bits
COLOUR = np.stack([GREY, GREY[::-1], GREY.T.reshape(6, 8)], axis=-1)
NO_VALUE, NODATA = np.where(GREY < 10, -9999, GREY.astype(np.int16)), [(42113, "s", 0, "-9999", True)]
STACK = np.stack([GREY // (i + 1) for i in range(5)])
SCAN = np.arange(4 * 5 * 6, dtype=np.int16).reshape(4, 5, 6)  # to the right, to the front, up
UPRIGHT = SCAN.transpose(2, 1, 0)
POINTS = np.random.default_rng(0).uniform(-1, 1, (300, 3)) + 5e5  # as coordinates of a map
CAT_OWL = ("cat", "owl")

Write = Callable[[Path], None]


@dataclass(frozen=True)
class File:
    """A file, or files in folders.

    Attributes
    ----------
    kind : name of the data set
    what : what is in it, for the page
    path : its name in the folder that ``write`` fills; the settings' ``path``, or ``manifest`` if it ends in .csv
    write : fills a folder
    shape : of a point
    low, high : of all values, or None
    labels : classes, or the smallest and largest number
    error, warning : the line, or a part of it
    values : of every point, or None
    """

    kind: str
    what: str
    path: str
    write: Write
    shape: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None
    labels: tuple[Any, ...] = CAT_OWL
    settings: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    warning: str = ""
    values: np.ndarray | None = None


def in_classes(suffix: str, write: Write, names: tuple[str, ...] = ("cat/1", "cat/2", "owl/1", "owl/2")) -> Write:
    def write_all(folder: Path) -> None:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write(folder / (name + suffix))

    return write_all


def pillow(values: np.ndarray, mode: str | None = None, **how: Any) -> Write:
    def write(path: Path) -> None:
        from PIL import Image

        image = Image.fromarray(values)
        (image if mode is None else image.convert(mode)).save(path, **how)

    return write


def tiff(values: np.ndarray, **how: Any) -> Write:
    def write(path: Path) -> None:
        import tifffile

        tifffile.imwrite(path, values, **how)

    return write


def pages(values: np.ndarray = STACK, axes: str | None = None) -> Write:
    """Pages of grey, of which an OME-TIFF says what they are."""
    return tiff(values, photometric="minisblack", **({} if axes is None else {"metadata": {"axes": axes}}))


def fits(values: np.ndarray | None) -> Write:
    def write(path: Path) -> None:
        from astropy.io import fits

        fits.PrimaryHDU(values).writeto(path)

    return write


def nifti(values: np.ndarray = SCAN) -> Write:
    def write(path: Path) -> None:
        import nibabel

        kind = nibabel.MGHImage if path.suffix.lower() in (".mgz", ".mgh") else nibabel.Nifti1Image
        nibabel.save(kind(values, np.eye(4)), path)

    return write


def mrc(values: np.ndarray = STACK) -> Write:
    def write(path: Path) -> None:
        import mrcfile

        stored = values.astype(np.int16) if values.dtype == np.uint8 else values
        with mrcfile.new(path, stored, compression="gzip" if path.suffix == ".gz" else None) as file:
            if values.ndim == 3 and ".mrcs" in path.suffixes:
                file.set_image_stack()

    return write


def mrc_listed(folder: Path) -> None:
    """Pages 1 to 4 of a stack, as RELION names them, in a table."""
    mrc()(folder / "stack.mrcs")
    lines = [f"{i + 1:06d}@stack.mrcs,{CAT_OWL[i % 2]}" for i in range(4)]
    (folder / "labels.csv").write_text("\n".join(["file,label", *lines]))


def mesh(path: Path) -> None:
    """A box of sides 1, 2 and 3."""
    import trimesh

    trimesh.creation.box((1, 2, 3)).export(path)


def points_of_ply(path: Path) -> None:
    import trimesh

    trimesh.PointCloud(POINTS).export(path)


def pcd(path: Path) -> None:
    from pypcd4 import PointCloud

    PointCloud.from_xyz_points(POINTS.astype(np.float32)).save(path)


def lines(separator: str, names: str = "", suffix: str = "") -> Write:
    """A line of text for each point."""
    rows = [separator.join([*(f"{each:.6f}" for each in point), *([suffix] if suffix else [])]) for point in POINTS]
    return text("\n".join([*([names] if names else []), *rows]) + "\n")


def cut(write: Write, part: float) -> Write:
    """The first part of what ``write`` writes."""

    def write_part(path: Path) -> None:
        write(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * part)])

    return write_part


def tone(rate: int = 8000) -> np.ndarray:
    """Half a second of a tone, in numbers that 16 bits hold."""
    return np.round(0.9 * 2**15 * np.sin(2 * np.pi * 440 * np.arange(rate // 2) / rate)) / 2**15


def sound(subtype: str | None = None, channels: int = 1, rate: int = 8000, form: str | None = None) -> Write:
    def write(path: Path) -> None:
        import soundfile

        soundfile.write(path, np.stack([tone(rate)] * channels, axis=1), rate, subtype, format=form)

    return write


def wav_of_a_stream(path: Path) -> None:
    """As a program writes that does not know the length: a header with the largest sizes."""
    sound("PCM_16")(path)
    content = bytearray(path.read_bytes())
    for name in (b"RIFF", b"data"):
        at = content.index(name) + 4
        content[at : at + 4] = struct.pack("<I", 0xFFFFFFFF)
    path.write_bytes(content)


def molecules(**how: Any) -> Write:
    def write(path: Path) -> None:
        import ase.io
        from ase.build import molecule
        from ase.calculators.singlepoint import SinglePointCalculator

        found = [molecule(name) for name in ("H2O", "CH4", "NH3", "C2H6") * 2]
        for i, atoms in enumerate(found):
            atoms.rattle(0.02, seed=i)
            atoms.info["heat"] = i / 3
            atoms.positions *= how.get("scale", 1)
            if path.suffix == ".traj":
                atoms.calc = SinglePointCalculator(atoms, energy=i / 3)
        ase.io.write(path, found)

    return write


def md17(path: Path) -> None:
    from ase.build import molecule

    water = molecule("H2O")
    R = water.positions + 0.02 * np.random.default_rng(0).standard_normal((8, 3, 3))
    np.savez(path, z=water.numbers, R=R, E=np.arange(8.0)[:, None] / 3, F=np.zeros((8, 3, 3)), theory=np.array("PBE"))


def database(path: Path) -> None:
    import ase.db
    from ase.build import molecule

    with ase.db.connect(path) as rows:
        for i, name in enumerate(("H2O", "CH4", "NH3", "C2H6") * 2):
            rows.write(molecule(name), heat=i / 3)


def sdf(path: Path) -> None:
    from rdkit import Chem
    from rdkit.Chem import rdDistGeom

    with Chem.SDWriter(str(path)) as file:
        for i, smiles in enumerate(("O", "C", "N", "CC") * 2):
            whole = Chem.AddHs(Chem.MolFromSmiles(smiles))
            rdDistGeom.EmbedMolecule(whole, randomSeed=i)
            whole.SetDoubleProp("heat", i / 3)
            file.write(whole)


def text(content: str, encoding: str = "utf-8") -> Write:
    return lambda path: path.write_bytes(content.encode(encoding)) and None


def named(name: str, write: Write) -> Write:
    return lambda folder: write(folder / name)


def arrays(**content: np.ndarray) -> Write:
    return lambda path: np.savez(path, **content)


def matlab(**content: Any) -> Write:
    from scipy.io import savemat

    return lambda path: savemat(path, content)


def matlab_7_3(path: Path) -> None:
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(512))


def npy_pair(folder: Path) -> None:
    np.save(folder / "X.npy", np.ones((8, 6)))
    np.save(folder / "y.npy", np.array(CAT_OWL * 4))


def parquet(path: Path) -> None:
    import pandas as pd

    pd.DataFrame({"width": np.arange(8) / 2, "kind": CAT_OWL * 4}).to_parquet(path)


def fields(engine: str) -> Write:
    def write(path: Path) -> None:
        import xarray

        rain = np.random.default_rng(0).normal(size=(12, 5, 6))
        content = {"rain": (("time", "lat", "lon"), rain), "heat": ("time", np.arange(12) / 11)}
        made = xarray.Dataset(content)
        made.to_zarr(path, consolidated=False) if engine == "zarr" else made.to_netcdf(path, engine=engine)

    return write


def plain_hdf5(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file["X"], file["y"] = np.random.default_rng(0).normal(size=(12, 5, 6)), np.arange(12) / 11


def listed(lines: str) -> Write:
    def write(folder: Path) -> None:
        in_classes(".png", pillow(GREY))(folder)
        (folder / "labels.csv").write_text(lines)

    return write


def of_two_sizes(folder: Path) -> None:
    in_classes(".png", pillow(GREY))(folder)
    pillow(GREY[:4])(folder / "cat" / "1.png")


def with_a_bad_one(folder: Path) -> None:
    in_classes(".png", pillow(GREY))(folder)
    (folder / "cat" / "0.png").write_bytes(b"no picture")


def of_two_rates(folder: Path) -> None:
    in_classes(".wav", sound())(folder)
    sound(rate=16000)(folder / "cat" / "1.wav")


CH4 = "C 0 0 0\nH .63 .63 .63\nH -.63 -.63 .63\nH -.63 .63 -.63\nH .63 -.63 -.63\n"
CSV = "width,height,kind\n" + "".join(f"{i / 2},{i % 3},{CAT_OWL[i % 2]}\n" for i in range(8))
QM9 = (
    f"5\ngdb 1\t{'1.5*^-1 ' * 10}-40.5\t1 1 1 1\n{CH4.replace('.63', '6.3*^-1')}1 2\nC\tC\nInChI=1S/CH4\tInChI=1S/CH4\n"
)
MANIFEST = """file,label,height,part
cat/1.png,cat,1.5,train
cat/2.png,cat,2.5,test
owl/1.png,owl,3,train
owl/2.png,owl,4,test
"""
FOREIGN = CSV.replace(",", ";").replace(".", ",").replace("owl", "föhn")
SMILES = "smiles,heat\n" + "".join(f"{'C' * (i % 2 + 1)},{i / 3}\n" for i in range(8))
SERIES = "".join(f"{i % 2}\t" + "\t".join(f"{np.sin(i + j / 3):.4f}" for j in range(20)) + "\n" for i in range(8))
TS = "@problemName Mine\n@univariate true\n@equalLength true\n@classLabel true cat owl\n@data\n" + "".join(
    ",".join(f"{np.sin(i + j / 3):.4f}" for j in range(20)) + f":{CAT_OWL[i % 2]}\n" for i in range(8)
)


def picture(
    what: str,
    suffix: str,
    write: Write,
    values: Any = (),
    low: Any = None,
    high: Any = None,
    error: str = "",
    **settings: Any,
) -> File:
    """In class folders; ``values`` are those of a point, or its shape."""
    expected = {"shape": values, "low": low, "high": high}
    if isinstance(values, np.ndarray):
        expected = {"shape": values.shape, "low": values.min(), "high": values.max(), "values": values}
    return File("images", what, "", in_classes(suffix, write), **expected, settings=settings, error=error)


def recording(what: str, suffix: str, write: Write, **more: Any) -> File:
    expected = {"shape": (32, 32), "high": 1} | more
    return File("sounds", what, "", in_classes(suffix, write), **expected)


def molecule_file(what: str, path: str, write: Write, atoms: int = 8, **more: Any) -> File:
    settings = {"target": "heat", "task": "regression"} | more.pop("settings", {})
    labels = more.pop("labels", (0, 7 / 3))
    return File("molecules", what, path, named(path, write), (atoms, atoms), labels=labels, settings=settings, **more)


def cloud(what: str, suffix: str, write: Write, **more: Any) -> File:
    """Centred, in class folders; of the box all points are on the surface."""
    expected = {"shape": (256, 3), "low": -1, "high": 1} | more
    return File("clouds", what, "", in_classes(suffix, write), **expected)


RGB, ALL, VOLUME, PICTURES = {"channels": "rgb"}, {"channels": "all"}, {"pages": "volume"}, {"pages": "pictures"}

FILES = [
    picture("PNG, 8 bits", ".png", pillow(GREY), GREY / 255),
    picture("PNG, suffix in capitals", ".PNG", pillow(GREY, format="PNG"), GREY / 255),
    picture("PNG, 1 bit", ".png", pillow(GREY > 99), (GREY > 99) * 1.0),
    picture("PNG, 16 bits", ".png", pillow(CAMERA * np.uint16(16)), CAMERA * 16.0 / 65535),
    picture("PNG, 16 bits in colour", ".png", pillow(CAMERA * np.uint16(16)), np.stack([CAMERA * 16.0] * 3, -1) / 65535,
            **RGB),
    picture("PNG, 12 bits in 16", ".png", pillow(CAMERA), CAMERA / 4095),
    picture("PNG, 12 bits in 16, all channels", ".png", pillow(CAMERA), CAMERA / 4095, **ALL),
    picture("PNG, palette", ".png", pillow(GREY, "P"), GREY / 255),
    picture("PNG, colour", ".png", pillow(COLOUR), COLOUR / 255),
    picture("PNG, colour, all channels", ".png", pillow(COLOUR), COLOUR / 255, **ALL),
    picture("PNG, colour in grey", ".png", pillow(COLOUR), (6, 8), channels="grey"),
    picture("PNG, grey as three colours", ".png", pillow(np.stack([GREY] * 3, -1)), GREY / 255),
    picture("PNG, grey in colour", ".png", pillow(GREY), np.stack([GREY] * 3, -1) / 255, **RGB),
    picture("PNG, grey, all channels", ".png", pillow(GREY), GREY / 255, **ALL),
    picture("PNG, transparent", ".png", pillow(COLOUR, "RGBA"), COLOUR / 255, **RGB),
    picture("JPEG", ".jpg", pillow(GREY, quality=95), (6, 8)),
    picture("JPEG, colour", ".JPEG", pillow(COLOUR, format="JPEG"), (6, 8, 3)),
    picture("WebP, lossless", ".webp", pillow(COLOUR, lossless=True), COLOUR / 255, **RGB),
    picture("BMP", ".bmp", pillow(COLOUR), COLOUR / 255, **RGB),
    picture("GIF", ".gif", pillow(GREY), GREY / 255),
    picture("JPEG 2000", ".jp2", pillow(GREY, irreversible=False), GREY / 255),
    picture("TGA", ".tga", pillow(COLOUR), COLOUR / 255, **RGB),
    picture("PPM", ".ppm", pillow(COLOUR), COLOUR / 255, **RGB),
    picture("PGM", ".pgm", pillow(GREY), GREY / 255),
    picture("TIFF, 8 bits", ".tif", tiff(GREY), GREY / 255),
    picture("TIFF of Pillow", ".tif", pillow(GREY), GREY / 255),
    picture("TIFF, 12 bits in 16", ".TIFF", tiff(CAMERA), CAMERA / 4095),
    picture("TIFF, as stored", ".tif", tiff(CAMERA), CAMERA, scale="none"),
    picture("TIFF, percentiles", ".tif", tiff(CAMERA), (6, 8), 0, 1, scale="percentile"),
    picture("TIFF, 32 bits", ".tif", tiff(CAMERA.astype(np.uint32) * 2**20), CAMERA * 2.0**20 / (2**32 - 1)),
    picture("TIFF, signed", ".tif", tiff(GREY.astype(np.int16) - 99), GREY / 235),
    picture("TIFF, floats", ".tif", tiff(GREY / np.float32(255)), GREY / 255),
    picture("TIFF, floats beyond 0 and 1", ".tif", tiff(GREY * 1.5 - 3), GREY / 235),
    picture("TIFF, LZW", ".tif", tiff(GREY, compression="lzw"), GREY / 255),
    picture("TIFF, deflated", ".tif", tiff(CAMERA, compression="zlib", predictor=2), CAMERA / 4095),
    picture("TIFF, tiles", ".tif", tiff(GREY, tile=(16, 16)), GREY / 255),
    picture("TIFF, colour", ".tif", tiff(COLOUR, photometric="rgb"), COLOUR / 255),
    picture("TIFF, colour of Pillow", ".tif", pillow(COLOUR), COLOUR / 255, **RGB),
    picture("TIFF, colours one after the other", ".tif",
            tiff(COLOUR.transpose(2, 0, 1).copy(), photometric="rgb", planarconfig="separate"), COLOUR / 255, **RGB),
    picture("TIFF, pages as channels", ".tif", pages(), STACK.transpose(1, 2, 0) / 255, **ALL),
    picture("TIFF, pages as depth", ".tif", pages(), STACK / 255, **VOLUME),
    picture("TIFF, the first page", ".tif", pages(), STACK[0] / 255, pages="first"),
    picture("TIFF, pages, not said what they are", ".tif", pages(),
            error="set dataset.channels=all or dataset.pages=volume, or pictures"),
    picture("TIFF, each page a picture", ".tif", pages(), (6, 8), 0, TOP, **PICTURES),
    picture("OME-TIFF, channels", ".ome.tif", pages(axes="CYX"), STACK.transpose(1, 2, 0) / 255, **ALL),
    picture("OME-TIFF, depth", ".ome.tif", pages(axes="ZYX"), STACK / 255, **VOLUME),
    picture("OME-TIFF, depth and channels", ".ome.tif", pages(np.stack([STACK, STACK // 2]), "CZYX"),
            np.stack([STACK, STACK // 2], -1) / 255, **ALL, **VOLUME),
    picture("OME-TIFF, channels and depth", ".ome.tif", pages(np.stack([STACK, STACK // 2]), "ZCYX"),
            np.stack([STACK, STACK // 2]).transpose(0, 2, 3, 1) / 255, **ALL, **VOLUME),
    picture(
        "GeoTIFF, four bands", ".tif",
        tiff(
            np.stack([CAMERA] * 4), photometric="minisblack", planarconfig="separate",
            extratags=[(33550, "d", 3, (10.0, 10.0, 0.0), True), (34735, "H", 4, (1, 1, 0, 0), True)],
        ),
        np.stack([CAMERA] * 4, -1) / 4095, **ALL,
    ),
    picture("GeoTIFF, with a tag for no value", ".tif", tiff(NO_VALUE, extratags=NODATA),
            error="has 2 pixels that are NaN or infinite or -9999, which its tag names as nodata"),
    picture("GeoTIFF, with a tag for no value, filled", ".tif", tiff(NO_VALUE, extratags=NODATA),
            np.where(GREY < 10, GREY + 40, GREY) / 255, missing="nearest"),
    picture("TIFF, cut", ".tif", cut(tiff(GREY), 0.1), error="is not a readable picture"),
    picture("FITS", ".fits", fits(GREY), GREY[::-1] / 255),
    picture("FITS, 12 bits in 16", ".fts", fits(CAMERA.astype(np.int16)), CAMERA[::-1] / 4095),
    picture("FITS, floats", ".fit", fits(GREY / np.float32(255)), GREY[::-1] / 255),
    picture("FITS, planes", ".fits", fits(STACK), STACK[:, ::-1] / 255, **VOLUME),
    picture("FITS, planes as channels", ".fits", fits(STACK), STACK[:, ::-1].transpose(1, 2, 0) / 255, **ALL),
    picture("FITS, planes, not said what they are", ".fits", fits(STACK), error="has 5 channels, expected grey", **RGB),
    picture("FITS, compressed", ".fits.gz", fits(GREY), GREY[::-1] / 255),
    picture("FITS, a pixel is NaN", ".fits", fits(np.where(GREY == 5, np.nan, GREY)),
            error="has 1 pixels that are NaN or infinite; dataset.missing=nearest fills them"),
    picture("FITS, a pixel is NaN, filled", ".fits", fits(np.where(GREY == 0, np.nan, GREY)),
            np.where(GREY == 0, 40, GREY)[::-1] / 255, missing="nearest"),
    picture("FITS, no pixel has a value", ".fits", fits(np.full((6, 8), np.nan)),
            error="channel 0 has no pixel with a value", missing="nearest"),
    picture("FITS, cut", ".fits", text("SIMPLE"), error="is not a readable picture"),
    picture("FITS without an image", ".fits", fits(None), error="has no image, only tables or headers"),
    picture("NIfTI", ".nii", nifti(), UPRIGHT / 255, **VOLUME),
    picture("NIfTI, compressed", ".nii.gz", nifti(), UPRIGHT / 255, **VOLUME),
    picture("NIfTI, suffix in capitals, resized", ".NII.GZ", nifti(), (4, 4, 4), resize=4, **VOLUME),
    picture("NIfTI, times", ".nii", nifti(np.stack([SCAN] * 2, -1)), np.stack([UPRIGHT] * 2, -1) / 255,
            **ALL, **VOLUME),
    picture("MGH, compressed", ".mgz", nifti(), UPRIGHT / 255, **VOLUME),
    picture("MGH", ".mgh", nifti(), UPRIGHT / 255, **VOLUME),
    picture("NIfTI, slices, not said what they are", ".nii", nifti(),
            error="set dataset.channels=all or dataset.pages=volume, or pictures"),
    picture("NIfTI, cut", ".nii", cut(nifti(), 0.5), error="is not a readable picture", **VOLUME),
    picture("MRC", ".mrc", mrc(GREY), GREY / 255),
    picture("MRC, volume, compressed", ".map.gz", mrc(), STACK / 255, **VOLUME),
    picture("MRC, floats, each section a picture", ".mrcs", mrc(STACK.astype(np.float32)), (6, 8), 0, TOP, **PICTURES),
    picture("MRC, complex numbers", ".mrc", mrc(GREY.astype(np.complex64)), error="holds complex numbers"),
    picture("MRC, cut", ".mrc", cut(mrc(), 0.9), error="is not a readable picture", **VOLUME),
    File("images", "pages of a stack, listed in a table", "labels.csv", mrc_listed, (6, 8), 0, TOP),
    File("images", "listed in a STAR file", "labels.star", named("labels.star", text("data_\n")),
         error="it is a STAR file (starfile.read reads it); save it as CSV or Parquet"),
    File("images", "in folders train and test", "", in_classes(".png", pillow(GREY), (
        "train/cat/1", "train/owl/1", "Testing/cat/1", "Testing/owl/1")), (6, 8), 0, TOP),
    File("images", "in folders inside those of the classes", "", in_classes(".png", pillow(GREY), (
        "cat/old/1", "cat/new/1", "owl/old/1", "owl/new/1")), (6, 8), 0, TOP, settings={"recursive": True}),
    File("images", "in folders inside those of the classes, not said so", "", in_classes(".png", pillow(GREY), (
        "cat/old/1", "owl/old/1")), error="found none directly in cat, owl; set dataset.recursive=true"),
    File("images", "listed in a table", "labels.csv", listed(MANIFEST), (6, 8), 0, TOP),
    File("images", "listed in a table, numbers and parts", "labels.csv", listed(MANIFEST), (6, 8), 0, TOP, (1.5, 4),
         {"target": "height", "split_column": "part", "task": "regression"}),
    File("images", "listed in a table, but not there", "labels.csv", listed(MANIFEST.replace("owl/", "own/")),
         error="2 of 4 files that labels.csv names do not exist"),
    File("images", "of two sizes", "", of_two_sizes, error="set dataset.resize, dataset.crop or dataset.pad"),
    File("images", "of two sizes, padded", "", of_two_sizes, (8, 8), 0, TOP, settings={"pad": 8}),
    File("images", "one is damaged", "", with_a_bad_one, error="0.png is not a readable picture"),
    File("images", "one is damaged, left out", "", with_a_bad_one, (6, 8), 0, TOP, settings={"on_error": "skip"},
         warning="1 of 5 pictures are left out"),
    cloud("PLY, points", ".ply", points_of_ply),
    cloud("PLY, a mesh", ".ply", mesh, low=-1.5, high=1.5),
    cloud("OBJ, a mesh", ".obj", mesh, low=-1.5, high=1.5),
    cloud("STL", ".stl", mesh, low=-1.5, high=1.5),
    cloud("OFF", ".off", mesh, low=-1.5, high=1.5),
    cloud("GLB", ".glb", mesh, low=-1.5, high=1.5),
    cloud("PCD", ".pcd", pcd),
    cloud("XYZ", ".xyz", lines(" ")),
    cloud("CSV with names", ".csv", lines(",", "x,y,z")),
    cloud("text, with an intensity", ".txt", lines("\t", suffix="1.0"), shape=(256, 4),
          settings={"columns": [0, 1, 2, 3]}),
    cloud("text, without a column that is named", ".txt", lines(" "), settings={"columns": [0, 1, 2, 3]},
          error="has 3 columns, expected at least 4"),
    cloud(".npy", ".npy", lambda path: np.save(path, POINTS)),
    cloud("XYZ, NaN without an echo", ".xyz", text("nan nan nan\n" + "0 0 1\n1 0 0\n" * 3), low=-0.5, high=0.5),
    cloud("XYZ, no points", ".xyz", text("nan nan nan\n"), error="has no points"),
    cloud("XYZ of a molecule", ".xyz", text("1\nmethane\nC 0 0 0\n"), error="is not a readable cloud"),
    cloud("STL, cut", ".stl", cut(mesh, 0.5), error="is not a readable cloud"),
    File("images", "no pictures", "", in_classes(".doc", text("no picture")), error="expected a folder for each class"),
    *(recording(f"WAV, {bits}", ".wav", sound(subtype)) for bits, subtype in (
        ("8 bits", "PCM_U8"), ("16 bits", "PCM_16"), ("24 bits", "PCM_24"), ("32 bits", "PCM_32"), ("floats", "FLOAT"),
        ("64 bits", "DOUBLE"), ("mu-law", "ULAW"))),
    recording("WAV, suffix in capitals", ".WAV", sound()),
    recording("WAV, two channels", ".wav", sound(channels=2)),
    recording("WAV of a stream, without its length", ".wav", wav_of_a_stream),
    recording("WAV, cut", ".wav", cut(sound("PCM_16"), 0.6), warning="ends too early"),
    recording("WAV, not one", ".wav", text("no sound"), error="is not a readable recording"),
    recording("WAV, samples", ".wav", sound("FLOAT"), shape=(4000,), low=-0.9, high=0.9, settings={"form": "waveform"}),
    *(recording(kind, suffix, sound()) for kind, suffix in (
        ("FLAC", ".flac"), ("Ogg Vorbis", ".ogg"), ("MP3", ".mp3"), ("AIFF", ".aiff"), ("AU", ".au"), ("CAF", ".caf"))),
    recording("FLAC, 24 bits", ".flac", sound("PCM_24")),
    recording("Opus", ".opus", sound("OPUS", form="OGG")),
    File("sounds", "of two rates", "", of_two_rates, error="set dataset.rate=8000 to resample"),
    File("sounds", "of two rates, resampled", "", of_two_rates, (32, 32), 0, 1, settings={"rate": 8000}),
    molecule_file("extended XYZ", "all.extxyz", molecules()),
    molecule_file("XYZ", "all.xyz", molecules()),
    molecule_file("XYZ, lower case", "all.xyz", text(f"5\nheat=1\n{CH4.lower()}" * 4), 5, labels=(1, 1)),
    molecule_file("XYZ, atomic numbers", "all.xyz", text(f"5\nheat=1\n{CH4.replace('C', '6').replace('H', '1')}" * 4),
                  5, labels=(1, 1)),
    molecule_file("XYZ of QM9", "all.xyz", text(QM9 * 4), 5, labels=(-40.5, -40.5), settings={"target": "U0"}),
    molecule_file("XYZ, no element", "all.xyz", text("1\nheat=1\nQq 0 0 0\n"),
                  error="that can be read (KeyError: 'Qq')"),
    molecule_file("XYZ in bohr", "all.xyz", molecules(scale=1.89), error="set dataset.unit=bohr"),
    molecule_file("XYZ, told to be in bohr", "all.xyz", molecules(scale=1.89), settings={"unit": "bohr"}),
    molecule_file("SDF", "all.sdf", sdf),
    molecule_file("SDF, cut", "all.sdf", text("\n\n\n 99 99"), error="is not an entry of an SDF file that RDKit reads"),
    molecule_file("database of ASE", "all.db", database),
    molecule_file("trajectory of ASE", "all.traj", molecules(), settings={"target": "energy"}),
    molecule_file(".npz of MD17", "all.npz", md17, 3, settings={"target": "energy"}),
    molecule_file("SMILES", "all.csv", text(SMILES)),
    molecule_file("SMILES, not one", "all.csv", text("smiles,heat\nC(C,1\n"), error="is no SMILES that RDKit reads"),
    File("table", "CSV", "all.csv", named("all.csv", text(CSV)), (2,), 0, 3.5, settings={"target": "kind"}),
    File("table", "tabs", "all.tsv", named("all.tsv", text(CSV.replace(",", "\t"))), (2,), 0, 3.5,
         settings={"target": "kind"}),
    File("table", "semicolons, decimal commas, Latin-1", "all.csv",
         named("all.csv", text(FOREIGN, "latin-1")), (2,), 0, 3.5,
         ("cat", "föhn"), {"target": "kind"}),
    File("table", "the same, with all settings", "all.csv",
         named("all.csv", text(FOREIGN, "latin-1")), (2,), 0, 3.5,
         ("cat", "föhn"), {"target": "kind", "separator": ";", "decimal": "comma", "encoding": "latin-1"}),
    File("table", "CSV, a value is missing", "all.csv", named("all.csv", text(CSV + ",1,cat\n")), (2,), 0, 3.5,
         settings={"target": "kind"}),
    File("table", "CSV, missing values refused", "all.csv", named("all.csv", text(CSV + ",1,cat\n")),
         settings={"target": "kind", "missing": "refuse"}, error="the table has missing values: width (1 row)"),
    File("table", "CSV, numbers with units", "all.csv",
         named("all.csv", text('width,height,kind\n"$1,200.50",5%,cat\n$3,0.5%,owl\n$7,?,owl\n$1,1%,cat\n')),
         (2,), 0.5, 1200.5, settings={"target": "kind"}),
    File("table", "CSV, several units", "all.csv",
         named("all.csv", text("width,kind\n" + "".join(f"{i} kg,cat\n{i}.5 t,owl\n" for i in range(25)))),
         settings={"target": "kind"}, error="width (numbers with several units, e.g. '0 kg' and '0.5 t')"),
    File("table", "Parquet", "all.parquet", named("all.parquet", parquet), (1,), 0, 3.5, settings={"target": "kind"}),
    File("table", "spreadsheet", "all.xlsx", named("all.xlsx", text("PK")), settings={"target": "kind"},
         error="it is a spreadsheet; save it as CSV or Parquet"),
    File("table", "JSON", "all.json", named("all.json", text("[]")), settings={"target": "kind"},
         error="it is a JSON file; save it as CSV or Parquet"),
    File("arrays", ".npz", "all.npz", named("all.npz", arrays(X=np.ones((8, 6, 8)), y=np.array(CAT_OWL * 4))),
         (6, 8), 1, 1),
    File("arrays", "two .npy files", "X.npy", npy_pair, (6,), 1, 1, settings={"y_path": "y.npy"}),
    File("arrays", ".npz with objects", "all.npz", named("all.npz", arrays(X=np.array([{}] * 8), y=np.arange(8))),
         error="an array in it holds Python objects"),
    File("arrays", ".mat, labels in cells", "all.mat",
         named("all.mat", matlab(X=np.ones((8, 6, 8)), y=np.array(CAT_OWL * 4, object))), (6, 8), 1, 1),
    File("arrays", ".mat, labels in a row of numbers", "all.mat",
         named("all.mat", matlab(X=np.ones((8, 6)), y=np.arange(8) % 2)), (6,), 1, 1, (0, 1)),
    File("arrays", ".mat of version 7.3", "all.mat", named("all.mat", matlab_7_3),
         error="it has version 7.3; save it in MATLAB with '-v7'"),
    File("arrays", "HDF5", "all.h5", named("all.h5", plain_hdf5),
         error="it is an HDF5 file, which dataset=fields reads"),
    *(File("fields", what, path, named(path, fields(engine)), (5, 6), labels=(0.0, 1), settings={"target": "heat"})
      for what, path, engine in (("NetCDF 4", "all.nc", "h5netcdf"), ("NetCDF 3", "all.nc", "scipy"),
                                 ("Zarr", "all.zarr", "zarr"))),
    File("fields", "HDF5 without names of axes", "all.h5", named("all.h5", plain_hdf5), (5, 6), labels=(0, 1),
         settings={"target": "y"}),
    File("fields", "no such variable", "all.nc", named("all.nc", fields("scipy")), settings={"target": "haet"},
         error="the file has no variable 'haet'; did you mean 'heat'"),
    File("series", "tab-separated, of the UCR archive", "all.tsv", named("all.tsv", text(SERIES)), (20,), -1, 1,
         (0, 1)),
    File("series", ".ts, of the UEA archive", "all.ts", named("all.ts", text(TS)), (20,), -1, 1),
]  # fmt: skip


def page() -> str:
    """The page with the table, made from the list."""
    rows = []
    for each in FILES:
        settings = " ".join(f"`dataset.{key}={value}`" for key, value in each.settings.items())
        scale = "" if each.low is None or each.high is None else f", {each.low:.3g} to {each.high:.3g}"
        low, high = each.labels
        answers = f"classes {low} and {high}" if isinstance(low, str) else f"numbers {low:.3g} to {high:.3g}"
        read = f"error: {each.error}" if each.error else f"{each.shape}{scale}; {answers}"
        note = f"; warning: {each.warning}" if each.warning else ""
        rows.append(f"| `{each.kind}` | {each.what} | {settings} | {read}{note} |")
    return (
        f"""# Files that are read

{len(FILES)} small files, which [tests/file_table.py](../../tests/file_table.py) writes and the tests read: the shape
of a point, the smallest and largest value, the answers, or the error. Made by `python tests/file_table.py`. How to
choose the settings is in [Read your own data](../howto/data.md).

| `dataset` | file | settings | read as |
|---|---|---|---|
"""
        + "\n".join(rows)
        + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
