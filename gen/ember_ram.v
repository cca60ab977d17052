`ifndef EMBER_RAM
`define EMBER_RAM
// Simple dual-port memory, one clock, read latency 1. A read in the same cycle as a write to the
// same address returns the old contents. Contents are undefined until written: nothing clears
// them. While read_en is low read_data holds.
module ember_ram #(
    parameter WIDTH = 1,
    parameter DEPTH = 2,
    parameter ADDR_BITS = 1,
    parameter STYLE = "auto"
) (
    input  wire                 clk,
    input  wire                 write_en,
    input  wire [ADDR_BITS-1:0] write_addr,
    input  wire [WIDTH-1:0]     write_data,
    input  wire                 read_en,
    input  wire [ADDR_BITS-1:0] read_addr,
    output reg  [WIDTH-1:0]     read_data
);
    (* ram_style = STYLE *) reg [WIDTH-1:0] cells [0:DEPTH-1];

    always @(posedge clk) begin
        if (write_en) cells[write_addr] <= write_data;
        if (read_en) read_data <= cells[read_addr];
    end
endmodule
`endif
