"""The modules of Python's standard library, the same whatever Python reads a trace.

Those that are files, of CPython 3.8 to 3.14, as traces name their functions by file. Left out is what a program of its
own is as often called: `code`, `profile`, `test`, `trace`.
"""

MODULES = frozenset(
    """
    __future__ _aix_support _android_support _ast_unparse _bootlocale _bootsubprocess _collections_abc _colorize
    _compat_pickle _compression _dummy_thread _ios_support _markupbase _opcode_metadata _osx_support _py_abc
    _py_warnings _pydatetime _pydecimal _pyio _pylong _pyrepl _sitebuiltins _strptime _threading_local _weakrefset abc
    aifc annotationlib argparse ast asynchat asyncio asyncore base64 bdb binhex bisect bz2 cProfile calendar cgi cgitb
    chunk cmd codecs codeop collections colorsys compileall compression concurrent configparser contextlib contextvars
    copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest dummy_threading
    email encodings enum filecmp fileinput fnmatch formatter fractions ftplib functools genericpath getopt getpass
    gettext glob graphlib gzip hashlib heapq hmac html http imaplib imghdr imp importlib inspect io ipaddress json
    keyword linecache locale logging lzma mailbox mailcap mimetypes modulefinder multiprocessing netrc nntplib ntpath
    nturl2path numbers opcode operator optparse os pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib
    posixpath pprint pstats pty py_compile pyclbr queue quopri random re reprlib rlcompleter runpy sched secrets
    selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver sqlite3 sre_compile sre_constants
    sre_parse ssl stat statistics string stringprep struct subprocess sunau symbol symtable sysconfig tabnanny tarfile
    telnetlib tempfile textwrap threading timeit token tokenize tomllib traceback tracemalloc tty types typing unittest
    urllib uu uuid warnings wave weakref webbrowser wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zoneinfo
    """.split()
)
"""Their names, without their packages' folders."""
