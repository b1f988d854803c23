# SPDX-License-Identifier: GPL-2.0-only
"""What real-text lets Python do: start, load much of its library, C extensions among it, and use a little of each."""

import argparse
import asyncio
import base64
import bz2
import csv
import ctypes
import datetime
import decimal
import difflib
import email.message
import email.policy
import fractions
import hashlib
import http.client
import inspect
import io
import json
import logging
import lzma
import multiprocessing.pool
import pickle
import random
import re
import sqlite3
import ssl
import statistics
import textwrap
import unittest
import urllib.request
import uuid
import xml.etree.ElementTree
import zipfile
import zlib

LOADED = (argparse, asyncio, ctypes, http.client, logging, multiprocessing.pool, ssl, unittest, urllib.request, uuid)
"""Only loaded, as much of what a program imports is. The kernel need not have sockets."""

ROUNDS = 3


def documents(seed: int) -> bytes:
    """The same data in several formats, there and back."""
    source = random.Random(seed)
    rows = [{"name": f"row {number}", "value": source.random()} for number in range(100)]
    assert json.loads(json.dumps(rows)) == rows
    assert pickle.loads(pickle.dumps(rows)) == rows
    table = io.StringIO()
    writer = csv.DictWriter(table, ["name", "value"])
    writer.writerows(rows)
    root = xml.etree.ElementTree.Element("rows")
    for row in rows:
        xml.etree.ElementTree.SubElement(root, "row", name=str(row["name"]))
    again = xml.etree.ElementTree.fromstring(xml.etree.ElementTree.tostring(root))
    assert len(again.findall("row")) == len(rows)
    message = email.message.EmailMessage(policy=email.policy.SMTP)
    message["Subject"] = "rows"
    message.set_content(table.getvalue())
    return message.as_bytes()


def compressed(data: bytes) -> None:
    for module in (zlib, bz2, lzma):
        assert module.decompress(module.compress(data)) == data
    with zipfile.ZipFile(io.BytesIO(), "w") as archive:
        archive.writestr(zipfile.ZipInfo("data"), data, zipfile.ZIP_DEFLATED)
    assert base64.b64decode(base64.b64encode(data)) == data
    hashlib.sha256(data).hexdigest()
    hashlib.blake2b(data).hexdigest()


def numbers() -> None:
    with decimal.localcontext() as context:
        context.prec = 60
        decimal.Decimal(2).sqrt()
    fractions.Fraction(1, 3) + fractions.Fraction(1, 7)
    statistics.stdev(range(100))
    datetime.datetime(2000, 1, 1).isoformat()


def texts(data: bytes) -> None:
    words = re.findall(r"[a-z]+", data.decode(errors="replace"))
    textwrap.fill(" ".join(words), 60)
    list(difflib.unified_diff(words[:50], words[25:75]))
    inspect.getsource(texts)


def database() -> int:
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table numbers (value integer)")
        connection.executemany("insert into numbers values (?)", ((number,) for number in range(1000)))
        (total,) = connection.execute("select sum(value) from numbers").fetchone()
    return int(total)


def main() -> None:
    for seed in range(ROUNDS):
        data = documents(seed)
        compressed(data)
        numbers()
        texts(data)
        assert database() == 499500


if __name__ == "__main__":
    main()
