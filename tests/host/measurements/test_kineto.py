"""Kernels and collectives are counted from traces."""

import csv
import json

import pytest
from typer.testing import CliRunner

from host.measurements import __main__ as command
from host.measurements.__main__ import app
from host.measurements.kineto import Collective, Kernel, collectives, kernels, read_traces


def op(name, ts, dur, dims=(), tid=1):
    return {"cat": "cpu_op", "name": name, "ts": ts, "dur": dur, "tid": tid,
            "args": {"Input Dims": list(dims)}}


def launch(number, ts, tid=1):
    return {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts, "dur": 2, "tid": tid,
            "args": {"correlation": number}}


def kernel(number, name, ts, dur, cat="kernel"):
    return {"cat": cat, "name": name, "ts": ts, "dur": dur, "args": {"correlation": number}}


TRACE = {"traceEvents": [
    op("aten::linear", 0, 100, [[16, 8]]),
    op("aten::addmm", 10, 50, [[4], [16, 8], [8, 4], [], []]),
    launch(1, 20), launch(2, 40),
    kernel(1, "void gemm<float, (int)3>(float*)", 500, 7),
    kernel(2, "splitK(int)", 510, 3),
    op("aten::cat", 110, 20, [[], []]), launch(3, 115),
    kernel(3, "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>(int)", 520, 4),
    op("fbgemm::split_embedding_codegen_lookup_sgd_function", 140, 20,
       [[0], [999], [0], [0], [3], [3], [4], [], [], [4], [], [70], [33]]),
    launch(4, 150), kernel(4, "void forward_kernel<float>(int)", 530, 6),
    # Another thread calls at the same time: its operator launched the kernel.
    op("torch::autograd::CppNode<SplitLookupFunction_sgd_Op>", 140, 40, [[32, 16]], tid=2),
    launch(5, 151, tid=2), kernel(5, "void backward_kernel<float>(int)", 540, 9),
    op("aten::copy_", 200, 20, [[16], [16], []]), launch(6, 205),
    kernel(6, "Memcpy HtoD (Pinned -> Device)", 550, 1, "gpu_memcpy"),
    # A kernel of the previous step: its launch is not in the trace.
    kernel(99, "void late<float>(int)", 490, 5),
    op("record_param_comms", 230, 30, [[24]]), launch(7, 240),
    kernel(7, "ncclKernel_SendRecv(int)", 560, 40),
    kernel(8, "ncclKernel_AllReduce(int)", 610, 50),
]}
EXECUTION = {"nodes": [
    {"id": 1, "name": "aten::cat", "output_shapes": [[2, 12]]},
    {"id": 2, "name": "record_param_comms",
     "inputs": [[9, 9, 0, 24, 4, "cuda:0"], 1, 2, 0, "all_to_allv", [4, 20], [12, 12]]},
    {"id": 3, "name": "record_param_comms", "inputs": [7, 0, 0, "wait", [], []]},
    {"id": 4, "name": "record_param_comms",
     "inputs": [[[9, 9, 0, 100, 4, "cuda:0"]], 1, 2, 0, "allreduce", [], []]},
]}


def test_a_kernel_belongs_to_the_innermost_operator_that_launched_it():
    assert kernels(TRACE, EXECUTION) == [
        Kernel("aten::addmm", "gemm", "4 16x8 8x4", 0, 7.0),
        Kernel("aten::addmm", "splitK", "4 16x8 8x4", 0, 3.0),
        Kernel("aten::cat", "CatArrayBatchedCopy", "2x12", 0, 4.0),
        Kernel("fbgemm::split_embedding_codegen_lookup_sgd_function", "forward_kernel",
               "0 999 0 0 3 3 4 4 70 33", 70, 6.0),
        Kernel("CppNode<SplitLookupFunction_sgd_Op>", "backward_kernel", "32x16", 70, 9.0),
        Kernel("aten::copy_", "Memcpy HtoD", "16 16", 0, 1.0)]


def test_without_an_execution_trace_lists_have_no_shape():
    assert [each.shapes for each in kernels(TRACE) if each.operator == "aten::cat"] == [""]


def test_collectives_have_the_bytes_of_the_execution_trace():
    assert collectives(TRACE, EXECUTION) == [
        Collective("all_to_all", (16, 80), 40.0), Collective("all_reduce", (400,), 50.0)]
    with pytest.raises(ValueError, match="execution must have the 2 collectives of the trace"):
        collectives(TRACE, {"nodes": EXECUTION["nodes"][:3]})


def _folder(path, name, *contents):
    folder = path / name
    folder.mkdir(parents=True)
    for rank, content in enumerate(contents):
        (folder / f"{rank}.json").write_text(json.dumps(content))
    return str(folder)


def test_the_command_counts_equal_kernels_in_one_line(tmp_path):
    traces = _folder(tmp_path, "kineto", TRACE, TRACE)
    executions = _folder(tmp_path, "execution", EXECUTION, EXECUTION)
    done = CliRunner().invoke(app, ["trace", traces, executions, "--output", str(tmp_path / "o")])
    assert done.exit_code == 0, done.output
    with open(tmp_path / "o" / "v100_step_kernels.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 6
    assert lines[0] == {"operator": "aten::addmm", "kernel": "gemm", "shapes": "4 16x8 8x4",
                        "rows": "0", "calls_0": "1", "calls_1": "1", "us_0": "7", "us_1": "7"}
    assert (tmp_path / "o" / "v100_step_collectives.csv").read_text().splitlines() == [
        "kind,sent,us_0,us_1", "all_to_all,16 80,40,40", "all_reduce,400,50,50"]


def test_mistakes_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"folder must contain traces \(\*\.json\)"):
        read_traces(tmp_path)
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ValueError, match=r"a\.json is not JSON"):
        read_traces(tmp_path)


def test_a_mistake_is_one_line_and_exit_status_2(tmp_path, capsys):
    traces = _folder(tmp_path, "kineto", TRACE, TRACE)
    executions = _folder(tmp_path, "execution", EXECUTION)
    assert command.main(["trace", traces, executions]) == 2
    assert capsys.readouterr().err == (
        "host.measurements: execution must have a trace for each of 2 ranks, not 1\n")


@pytest.mark.parametrize("ran", [[], {}, None, {"traceEvents": [{"cat": "kernel"}]},
                                 {"traceEvents": [{"cat": "kernel", "ts": 1}]}])
def test_what_is_no_trace_is_told_by_its_file(tmp_path, capsys, ran):
    traces = _folder(tmp_path, "kineto", ran)
    executions = _folder(tmp_path, "execution", EXECUTION)
    assert command.main(["trace", traces, executions, f"--output={tmp_path / 'o'}"]) == 2
    said = capsys.readouterr().err
    assert "0.json are not traces of a rank's step" in said and said.count("\n") == 1
