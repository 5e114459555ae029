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

from service.reading.choices import Choices
from service.reading.columns import Column, Columns
from service.reading.limits import Limits, Rejected
from service.reading.noticing import notice
from service.reading.packing import pack, unpack
from service.reading.reader import Reader, read_file

__all__ = ["Choices", "Column", "Columns", "Limits", "Reader", "Rejected", "notice", "pack", "read_file", "unpack"]
