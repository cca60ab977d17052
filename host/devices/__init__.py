"""Timing models: cost of actions on a GPU, CPU, copy engine or network, in microseconds.

Three things are kept apart. **The work** is an :class:`operation.Operation` (bytes, rows,
arithmetic; independent of the device), made by the functions of ``embedding_work`` and
``dense_work``. **The device** is a profile, a TOML file of constants (``host/profiles``) loaded
with :func:`host.toml.profile.load_profile`. **The cost** is a :class:`cost.Cost`: ``us`` from start
to end with all resources free, ``overhead_us`` of them in which no part of the work itself is done
(the phase ``overhead``), and ``busy``, the microseconds that each of ``gpu``, ``gpu_memory``,
``cpu``, ``cpu_memory``, ``nic`` and ``link`` is occupied. A scheduler places a stage for
``us``, lets it hold the resources of ``busy``, and books ``overhead_us`` and ``work_us`` to their
phases. ``a + b`` runs one after the other. Only ``Topology.send`` keeps state.

- ``GpuTime(gpu, software).kernels(operation)``: how long its kernels run, and which shares of the
  GPU and of its memory they hold. ``.run(*operations)``: operators called one after the other by
  one thread on an idle GPU; ``.synchronize()``: the host waits for the GPU.
- ``CpuTime(cpu).run(*operations)``: the same operations on a CPU.
- ``CopyTime(pcie, software)``: the call, the latency and the bytes of a copy between host and GPU.
- ``MpiCollectives(mpi, topology, call_us)``: ``all_to_all(traffic)``, ``all_reduce(size)`` between
  host memories, the framework's call included.
- ``NcclCollectives(nccl, topology)``: the same, from GPU memory to GPU memory, as kernels.
- ``Topology(profile)``: the links. ``uniform(size)`` makes traffic; ``send`` queues messages.
- ``TopologyProfile.of(network, nodes)``: the single level of an Ethernet profile. Two levels and
  128 endpoints: ``topology_leaf_spine``, and in hosts of eight GPUs ``topology_zionex``.

``traffic`` is the bytes from each endpoint to each, float64 ``[endpoints, endpoints]``.
``software`` is ``software_eager`` or ``software_tuned``; ``software.collective`` names its library
and ``software.fused_embedding`` says whether it uses ``gather(..., fused=True)``. Baselines and
systems with SmartNICs are charged by the same profile: each operator, copy and collective left on
the GPU goes through the same calls, of :class:`host.systems.program.Program`. For example, the top
MLP of 32 samples::

    software = load_profile("software_eager", SoftwareProfile)
    gpu = GpuTime(load_profile("gpu_rtx8000", GpuProfile), software)
    cost = gpu.run(*mlp(32, model.top_layers)) + gpu.synchronize()

:func:`host.toml.provenance.constants` lists the name, value, status and source of all numbers of a
profile; :func:`host.toml.provenance.uncertain` lists those that a sensitivity sweep halves and
doubles with :func:`host.toml.provenance.scaled`. ``python -m host.calibrate`` measures the profiles
of a machine.

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
