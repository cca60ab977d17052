"""Timing models: cost of actions on a GPU, CPU, copy engine or network, in microseconds.

Three concepts are separate:

- **Work** is an :class:`operation.Operation` (bytes, rows, arithmetic; device-independent). The
  functions of ``embedding_work`` and ``dense_work`` create it.
- **A device** is a profile, a TOML file of constants (``host/profiles``), read by
  :func:`host.toml.profile.load_profile`.
- **Cost** is a :class:`cost.Cost`. ``us`` is the duration with all resources free. ``overhead_us``
  is the part in which no work is done (phase ``overhead``). ``busy`` contains the microseconds that
  each of :data:`cost.RESOURCES` is occupied. A step has a stage of ``us``, which holds the
  resources of ``busy``; it assigns ``overhead_us`` and ``work_us`` to phases. ``a + b`` is a
  sequence. Only ``Topology.send`` has state.

The models:

- ``GpuTime(gpu, software).kernels(operation)``: duration of its kernels, and their shares of the
  GPU and of its memory bandwidth. ``.run(*operations)``: operators called in sequence by a single
  thread on an idle GPU. ``.synchronize()``: the host waits for the GPU.
- ``CpuTime(cpu).run(*operations)``: the same operations on a CPU.
- ``CopyTime(pcie, software)``: call, latency and bytes of a copy between host and GPU.
- ``MpiCollectives(mpi, topology, call_us)``: ``all_to_all(traffic)``, ``all_reduce(size)`` between
  host memories, including the framework's call.
- ``NcclCollectives(nccl, topology)``: the same between GPU memories, as kernels.
- ``Topology(profile)``: the links. ``uniform(size)`` makes traffic; ``send`` queues messages.
- ``TopologyProfile.of(network, nodes, inside=..., nics=...)``: an Ethernet profile above the levels
  inside a node, with the NICs of each node. Profiles with two levels and 128 endpoints:
  ``topology_leaf_spine``, and ``topology_zionex`` with hosts of eight GPUs.

``traffic`` is the bytes from each endpoint to each other, float64 ``[endpoints, endpoints]``.

``software`` is ``software_eager`` or ``software_tuned``. ``software.collective`` names its library,
and ``software.fused_embedding`` selects ``gather(..., fused=True)``. Baselines and systems with
SmartNICs use the same profile: each operator, copy and collective on the GPU is a call of
:class:`host.systems.program.Program`. For example, the top MLP of 32 samples::

    software = load_profile("software_eager", SoftwareProfile)
    gpu = GpuTime(load_profile("gpu_rtx8000", GpuProfile), software)
    cost = gpu.run(*mlp(32, model.top_layers)) + gpu.synchronize()

:func:`host.toml.provenance.constants` lists the name, value, status and source of all numbers of a
profile. :func:`host.toml.provenance.uncertain` lists the numbers that a sensitivity sweep halves
and doubles with :func:`host.toml.provenance.scaled`. ``python -m host.calibrate`` measures the
profiles of a machine.

=======================  =======================================================================
prefix of the profile    dataclass
=======================  =======================================================================
``gpu_``, ``pcie_``,     :class:`host.timing.gpu.GpuProfile`, :class:`host.timing.pcie.PcieProfile`,
``ethernet_``            :class:`host.timing.network.NetworkProfile`
``software_``, ``cpu_``  :class:`software.SoftwareProfile`, :class:`cpu.CpuProfile`
``mpi_``, ``nccl_``      :class:`mpi.MpiProfile`, :class:`nccl.NcclProfile`
``topology_``            :class:`topology.TopologyProfile`
=======================  =======================================================================
"""
