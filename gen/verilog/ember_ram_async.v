`ifndef EMBER_RAM_ASYNC
`define EMBER_RAM_ASYNC
// Simple dual-port memory with a combinational read port, for LUTRAM. A read in the same cycle as
// a write to the same address returns the old contents. Contents are undefined until written.
// With EMBER_XPM defined it is the vendor's xpm_memory_sdpram, which takes two words at least.
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
`ifdef EMBER_XPM
    generate
        if (DEPTH > 1) begin : macro
            xpm_memory_sdpram #(
                .MEMORY_SIZE(WIDTH * DEPTH), .MEMORY_PRIMITIVE(STYLE),
                .CLOCKING_MODE("common_clock"), .ECC_MODE("no_ecc"), .USE_MEM_INIT(0),
                .WRITE_DATA_WIDTH_A(WIDTH), .BYTE_WRITE_WIDTH_A(WIDTH), .ADDR_WIDTH_A(ADDR_BITS),
                .READ_DATA_WIDTH_B(WIDTH), .ADDR_WIDTH_B(ADDR_BITS), .READ_LATENCY_B(0),
                .WRITE_MODE_B("read_first")
            ) memory (
                .sleep(1'b0), .clka(clk), .ena(write_en), .wea(1'b1), .addra(write_addr),
                .dina(write_data), .injectsbiterra(1'b0), .injectdbiterra(1'b0),
                .clkb(clk), .rstb(1'b0), .enb(1'b1), .regceb(1'b1), .addrb(read_addr),
                .doutb(read_data), .sbiterrb(), .dbiterrb()
            );
        end else begin : register
            reg [WIDTH-1:0] only;
            always @(posedge clk) if (write_en) only <= write_data;
            assign read_data = only;
        end
    endgenerate
`else
`ifdef __ICARUS__
    localparam CELLS = 1 << ADDR_BITS;  // what lies beyond the end is there too, and never X
`else
    localparam CELLS = DEPTH;
`endif
    (* ram_style = STYLE *) reg [WIDTH-1:0] cells [0:CELLS-1];

    always @(posedge clk) begin
        if (write_en) cells[write_addr] <= write_data;
    end

    assign read_data = cells[read_addr];

`include "ember_randomize.vh"
`endif
endmodule
`endif
