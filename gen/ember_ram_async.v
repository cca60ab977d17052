`ifndef EMBER_RAM_ASYNC
`define EMBER_RAM_ASYNC
// Simple dual-port memory with a combinational read port, for LUTRAM. A read in the same cycle as
// a write to the same address returns the old contents. Contents are undefined until written.
module ember_ram_async #(
    parameter WIDTH = 1,
    parameter DEPTH = 2,
    parameter ADDR_BITS = 1,
    parameter STYLE = "distributed"
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
endmodule
`endif
