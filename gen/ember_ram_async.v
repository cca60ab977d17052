`ifndef EMBER_RAM_ASYNC
`define EMBER_RAM_ASYNC
// Simple dual-port memory with a combinational read port, for LUTRAM. A read in the same cycle as
// a write to the same address returns the old contents. Contents are undefined until written.
module ember_ram_async #(
    parameter WIDTH = 1,
    parameter DEPTH = 2,
    parameter ADDR_BITS = 1,
    /* verilator lint_off UNUSEDPARAM */
    parameter STYLE = "distributed"
    /* verilator lint_on UNUSEDPARAM */
) (
    input  wire                 clk,
    input  wire                 write_en,
    input  wire [ADDR_BITS-1:0] write_addr,
    input  wire [WIDTH-1:0]     write_data,
    input  wire [ADDR_BITS-1:0] read_addr,
    output wire [WIDTH-1:0]     read_data
);
    (* ram_style = STYLE *) reg [WIDTH-1:0] cells [0:DEPTH-1];

    always @(posedge clk) begin
        if (write_en) cells[write_addr] <= write_data;
    end

    assign read_data = cells[read_addr];

`ifdef VERILATOR
    // Simulation may start with any contents: +ember_random=SEED, different for each instance.
    initial begin : randomize
        bit [63:0] state;
        string path;
        bit [(WIDTH + 31) / 32 * 32 - 1:0] word;
        if ($value$plusargs("ember_random=%d", state)) begin
            path = $sformatf("%m");
            // verilator unroll_disable
            for (int i = 0; i < path.len(); i++)
                state = (state ^ {56'd0, path[i]}) * 64'h100000001B3;
            // verilator unroll_disable
            for (int i = 0; i < DEPTH; i++) begin
                // verilator unroll_disable
                for (int j = 0; j < (WIDTH + 31) / 32; j++) begin
                    state = state * 64'h5851F42D4C957F2D + 64'h14057B7EF767814F;
                    word[32 * j +: 32] = state[63:32];
                end
                cells[i] = word[WIDTH - 1:0];
            end
        end
    end
`endif
endmodule
`endif
