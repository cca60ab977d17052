"""Models of time: what actions cost on a GPU, a CPU, a copy engine or a network, in microseconds.

Three things are kept apart. **What is to be done** is an :class:`operation.Operation` (bytes,
rows, arithmetic; whatever it runs on), made by the functions of ``embedding_work`` and
``dense_work``. **What does it** is a profile, a TOML file of constants (``host/profiles``) loaded
with :func:`host.toml.profile.load_profile`. **What it takes** is a :class:`cost.Cost`: ``us`` from
begin
to end with all resources free, ``overhead_us`` of them in which nothing of the work itself is done
(the phase ``overhead``), and ``busy``, the microseconds that each of ``gpu``, ``gpu_memory``,
``cpu``, ``cpu_memory``, ``pcie``, ``nic`` and ``link`` is occupied. A scheduler places a stage for
``us``, lets it hold the resources of ``busy``, and books ``overhead_us`` and ``work_us`` to their
phases. ``a + b`` is one after the other. Nothing here keeps state, but for ``Topology.send``.

- ``GpuTime(gpu, software).run(*operations)``: operators called one after the other by one thread;
  with CUDA graphs, all that one call is given is one graph. ``GpuTime.synchronize()``: the host
  waits for the GPU.
- ``CpuTime(cpu).run(*operations)``: the same operations on a CPU.
- ``CopyTime(pcie, software).copy(size)``: host to GPU memory or back.
- ``MpiCollectives(mpi, topology, copies, call_us)``: ``all_to_all(traffic)``, ``all_reduce(size)``,
  with copies between GPU and host memory around them, or None for a CPU; and the framework's call.
- ``NcclCollectives(nccl, topology, software)``: the same, from GPU memory to GPU memory.
- ``Topology(profile)``: the links. ``uniform(size)`` makes traffic; ``send`` queues messages.
- ``TopologyProfile.of(network, nodes)``: the one level of an Ethernet profile. Two levels and 128
  endpoints: ``topology_leaf_spine``, and in hosts of eight GPUs ``topology_zionex``.

``traffic`` is bytes from each endpoint to each, float64 ``[endpoints, endpoints]``. ``software`` is
``software_eager`` or ``software_tuned``; ``software.collective`` says which library goes with it,
``software.fused_embedding`` whether ``gather(..., fused=True)`` does. One profile is charged to a
baseline and to a system with SmartNICs alike: each operator, copy and collective that is left on
the GPU goes through these same calls. As an example, the top MLP of 32 samples, and its predictions
back in host memory::

    software = load_profile("software_eager", SoftwareProfile)
    gpu = GpuTime(load_profile("gpu_rtx8000", GpuProfile), software)
    copies = CopyTime(load_profile("pcie_gen3x16", PcieProfile), software)
    cost = gpu.run(*mlp(32, model.top_layers)) + copies.copy(4 * 32) + gpu.synchronize()

Profiles know how far each of their numbers is to be trusted: :func:`host.toml.provenance.constants`
lists name, value, status and source of all, :func:`host.toml.provenance.uncertain` those that a
sensitivity sweep
halves and doubles with :func:`host.toml.provenance.scaled`. ``python -m host.calibrate`` measures
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
