"""The program of a child process: LLVM compiles one module with the given options. It imports only llvmlite.

LLVM's options are global, and some can be set only once, so each compilation has its own process. The job is JSON on
standard input. The result is on standard output, and LLVM's messages are on standard error.
"""

import json
import sys


def main() -> None:
    import llvmlite.binding as llvm

    job = json.load(sys.stdin)
    for option in job["options"]:
        llvm.set_option("tinyexplore", option)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    triple = job["triple"] or llvm.get_default_triple()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=job["cpu"],
        features=job["features"],
        opt=job["code_level"],
        reloc="pic",
        codemodel="small",
        abiname=job["abi"],
    )
    module = llvm.parse_assembly(job["ir"])
    module.triple = triple
    module.data_layout = str(machine.target_data)
    module.verify()
    level = job["level"]
    tuning = llvm.create_pipeline_tuning_options(speed_level=max(level, 0))
    tuning.loop_vectorization = job["loop_vectorization"]
    tuning.slp_vectorization = job["slp_vectorization"]
    tuning.loop_unrolling = job["loop_unrolling"]
    builder = llvm.create_pass_builder(machine, tuning)
    what = job["what"]  # "assembly", "times" of the passes, or the "object" file
    if what == "times":
        builder.start_pass_timing()
    if level >= 0:
        builder.getModulePassManager().run(module, builder)
    elif job["branches"]:
        manager = llvm.create_new_module_pass_manager()
        manager.add_simplify_cfg_pass()
        manager.run(module, builder)
    if what == "times":
        sys.stdout.write(builder.finish_pass_timing())
    elif what == "object":
        sys.stdout.buffer.write(machine.emit_object(module))
    else:
        sys.stdout.write(machine.emit_assembly(module))


if __name__ == "__main__":
    main()
