"""How the parts of a kernel are compiled: to be linked into it, with no machine code of their own.

numba optimises every function that it compiles and makes machine code of it, at once. A part is called from kernels only, which have its
code linked in, and are optimised as a whole: doing it for each part took a third of the time that compiling takes.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _Library(JITCodeLibrary):
    """LLVM's code, ready to be linked: the kernel that it becomes a part of is optimised, and of that machine code is made."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "frugal_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        part = object()  # what kernels that call it find it by
        state.targetctx.insert_user_function(part, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=part)
        return True


class Linked(CompilerBase):
    """numba's own way of compiling, but for the last step."""

    def define_pipelines(self) -> list[Any]:
        built = DefaultPassBuilder.define_nopython_pipeline(self.state)
        built.passes = [(_Lowering if step is NativeLowering else step, said) for step, said in built.passes]
        built._finalized = False
        built.finalize()
        return [built]
