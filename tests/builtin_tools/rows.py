"""Data files for the tests."""

import openpyxl

SALES_CSV = (
    "城市,date,amount,units\n上海,2024-01-01,10.5,1\n北京,2024-01-02,20,2\n上海,2024-01-03,30,3\n,2024-01-04,,4\n"
)


def create_data_folder(tmp_path):
    """A folder with the same rows in several formats, and a secret file next to the folder."""
    root = tmp_path / "data"
    root.mkdir()
    (tmp_path / "secret.csv").write_text("secret\n1\n")
    (root / "sales.csv").write_text(SALES_CSV, encoding="utf-8")
    (root / "mark.csv").write_bytes(b"\xef\xbb\xbf" + SALES_CSV.encode())
    (root / "gbk.csv").write_bytes(SALES_CSV.encode("gb18030"))
    (root / "wide.csv").write_bytes(SALES_CSV.encode("utf-16"))
    (root / "people.json").write_text('[{"name": "Mara", "age": 41}, {"name": "张三", "age": 29}]', encoding="utf-8")
    (root / "people.ndjson").write_text('{"name": "Mara", "age": 41}\n{"name": "张三", "age": 29}\n', encoding="utf-8")
    (root / "notes.txt").write_bytes("第一行\n第二行\n第三行\n".encode("gb18030"))
    (root / "blob.bin").write_bytes(b"\0\1\2")
    (root / "broken.parquet").write_bytes(b"no parquet")
    (root / "broken.xlsx").write_bytes(b"no sheet")
    (root / "link.csv").symlink_to(tmp_path / "secret.csv")
    book = openpyxl.Workbook()
    book.active.title = "销售"
    for row in (["城市", "amount"], ["上海", 10.5], ["北京", 20]):
        book.active.append(row)
    book.create_sheet("second").append(["x"])
    book["second"].append([7])
    book.save(root / "book.xlsx")
    return root
