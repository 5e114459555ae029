"""Tables that people send, CSV, gzipped CSV or Parquet, as typed columns, within limits.

limits     how large a table may be, and what is said of one that cannot be taken
tally      what a table takes so far
choices    how it is to be read: what is left out, what is numbers, which cells mean nothing; blanks, those cells made empty
columns    the table itself: what learners take
noticing   columns that are seldom meant as they are; remarks, how that is told
packing    columns to bytes and back
reader     bytes as they come, whatever they hold, to columns
csvs       CSV, cut into blocks; blocks, what one holds; gathering, blocks to columns
gzips      gzip, unpacked in pieces
parquets   Parquet, read in a process of its own: parquet_child
children   what a process that we start is given
"""

from frugal.service.tables.choices import Choices
from frugal.service.tables.columns import Column, Columns
from frugal.service.tables.limits import Limits, Rejected
from frugal.service.tables.noticing import notice
from frugal.service.tables.packing import pack, unpack
from frugal.service.tables.reader import Reader, read_file

__all__ = ["Choices", "Column", "Columns", "Limits", "Reader", "Rejected", "notice", "pack", "read_file", "unpack"]
