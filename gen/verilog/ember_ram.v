`ifndef EMBER_RAM
`define EMBER_RAM
// Simple dual-port memory, one clock, read latency 1. A read in the same cycle as a write to the
// same address returns the old contents. Contents are undefined until written: nothing clears
// them. While read_en is low read_data holds.
// With EMBER_XPM defined it is the vendor's xpm_memory_sdpram, whose old contents with a common
// clock are its read_first; the macro takes two words at least.
module ember_ram #(
    parameter WIDTH = 1,
    parameter DEPTH = 2,
    parameter ADDR_BITS = 1,
    /* verilator lint_off UNUSEDPARAM */
    parameter STYLE = "auto"
    /* verilator lint_on UNUSEDPARAM */
) (
    input  wire                 clk,
    input  wire                 write_en,
    input  wire [ADDR_BITS-1:0] write_addr,
    input  wire [WIDTH-1:0]     write_data,
    input  wire                 read_en,
    input  wire [ADDR_BITS-1:0] read_addr,
`ifdef EMBER_XPM
    output wire [WIDTH-1:0]     read_data
);
    generate
        if (DEPTH > 1) begin : macro
            xpm_memory_sdpram #(
                .MEMORY_SIZE(WIDTH * DEPTH), .MEMORY_PRIMITIVE(STYLE),
                .CLOCKING_MODE("common_clock"), .ECC_MODE("no_ecc"), .USE_MEM_INIT(0),
                .WRITE_DATA_WIDTH_A(WIDTH), .BYTE_WRITE_WIDTH_A(WIDTH), .ADDR_WIDTH_A(ADDR_BITS),
                .READ_DATA_WIDTH_B(WIDTH), .ADDR_WIDTH_B(ADDR_BITS), .READ_LATENCY_B(1),
                .WRITE_MODE_B("read_first")
            ) memory (
                .sleep(1'b0), .clka(clk), .ena(write_en), .wea(1'b1), .addra(write_addr),
                .dina(write_data), .injectsbiterra(1'b0), .injectdbiterra(1'b0),
                .clkb(clk), .rstb(1'b0), .enb(read_en), .regceb(1'b1), .addrb(read_addr),
                .doutb(read_data), .sbiterrb(), .dbiterrb()
            );
        end else begin : register
            reg [WIDTH-1:0] only, word;
            always @(posedge clk) begin
                if (write_en) only <= write_data;
                if (read_en) word <= only;
            end
            assign read_data = word;
        end
    endgenerate
`else
    output reg  [WIDTH-1:0]     read_data
);
`ifdef __ICARUS__
    localparam CELLS = 1 << ADDR_BITS;  // what lies beyond the end is there too, and never X
`else
    localparam CELLS = DEPTH;
`endif
    (* ram_style = STYLE *) reg [WIDTH-1:0] cells [0:CELLS-1];

    always @(posedge clk) begin
        if (write_en) cells[write_addr] <= write_data;
        if (read_en) read_data <= cells[read_addr];
    end

`include "ember_randomize.vh"
`ifdef __ICARUS__
    initial read_data = {(WIDTH + 31) / 32{$urandom}};
`endif
`endif
endmodule
`endif
