// Behavioural twin of the vendor's macro xpm_memory_sdpram (UG974), for simulators only: Vivado has
// the macro itself. It has the macro's ports and parameters, and does what a memory without ECC,
// sleep and initial contents does with one clock: latency 0 to 3, whole words. What the macro
// refuses, and what the twin cannot do, ends the simulation with a message.
/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
module xpm_memory_sdpram #(
    parameter MEMORY_SIZE = 2048,
    parameter MEMORY_PRIMITIVE = "auto",
    parameter CLOCKING_MODE = "common_clock",
    parameter ECC_MODE = "no_ecc",
    parameter ECC_TYPE = "none",
    parameter ECC_BIT_RANGE = "7:0",
    parameter MEMORY_INIT_FILE = "none",
    parameter MEMORY_INIT_PARAM = "0",
    parameter USE_MEM_INIT = 1,
    parameter USE_MEM_INIT_MMI = 0,
    parameter IGNORE_INIT_SYNTH = 0,
    parameter WAKEUP_TIME = "disable_sleep",
    parameter AUTO_SLEEP_TIME = 0,
    parameter MESSAGE_CONTROL = 0,
    parameter USE_EMBEDDED_CONSTRAINT = 0,
    parameter MEMORY_OPTIMIZATION = "true",
    parameter CASCADE_HEIGHT = 0,
    parameter SIM_ASSERT_CHK = 0,
    parameter WRITE_PROTECT = 1,
    parameter RAM_DECOMP = "auto",
    parameter RST_MODE_A = "SYNC",
    parameter RST_MODE_B = "SYNC",
    parameter WRITE_DATA_WIDTH_A = 32,
    parameter BYTE_WRITE_WIDTH_A = 32,
    parameter ADDR_WIDTH_A = 6,
    parameter READ_DATA_WIDTH_B = 32,
    parameter ADDR_WIDTH_B = 6,
    parameter READ_RESET_VALUE_B = "0",
    parameter READ_LATENCY_B = 2,
    parameter WRITE_MODE_B = "no_change"
) (
    input  wire                          sleep,
    input  wire                          clka,
    input  wire                          ena,
    input  wire [WRITE_DATA_WIDTH_A / BYTE_WRITE_WIDTH_A - 1:0] wea,
    input  wire [ADDR_WIDTH_A-1:0]       addra,
    input  wire [WRITE_DATA_WIDTH_A-1:0] dina,
    input  wire                          injectsbiterra,
    input  wire                          injectdbiterra,
    input  wire                          clkb,
    input  wire                          rstb,
    input  wire                          enb,
    input  wire                          regceb,
    input  wire [ADDR_WIDTH_B-1:0]       addrb,
    output wire [READ_DATA_WIDTH_B-1:0]  doutb,
    output wire                          sbiterrb,
    output wire                          dbiterrb
);
    localparam WIDTH = WRITE_DATA_WIDTH_A;
    localparam DEPTH = MEMORY_SIZE / WIDTH;
    // The macro's rules 40-3, -6, -8, -9, -16, -20, -22, -25, -49 and -50, then the twin's own.
    localparam FITS = MEMORY_SIZE % WIDTH == 0 && DEPTH >= 2
        && $clog2(DEPTH) <= ADDR_WIDTH_A && $clog2(DEPTH) <= ADDR_WIDTH_B;
    localparam LEGAL = FITS
        && (MEMORY_PRIMITIVE == "auto" || MEMORY_PRIMITIVE == "distributed"
            || MEMORY_PRIMITIVE == "block" || MEMORY_PRIMITIVE == "ultra")
        && ((READ_LATENCY_B >= 1 && READ_LATENCY_B <= 3)
            || (READ_LATENCY_B == 0 && MEMORY_PRIMITIVE == "distributed"))
        && WRITE_MODE_B == "read_first" && CLOCKING_MODE == "common_clock" && ECC_MODE == "no_ecc"
        && READ_DATA_WIDTH_B == WIDTH && BYTE_WRITE_WIDTH_A == WIDTH && USE_MEM_INIT == 0
        && AUTO_SLEEP_TIME == 0;

    initial begin
        if (!LEGAL) begin
            $display("xpm_memory_sdpram: parameters that the macro refuses or its twin lacks");
            $finish;
        end
    end

    reg [WIDTH-1:0] cells [0:DEPTH-1];

    always @(posedge clka) if (ena && wea[0]) cells[addra] <= dina;

    generate
        if (READ_LATENCY_B == 0) begin : at_once
            assign doutb = cells[addrb];
        end else begin : registered
            // Enable enb goes along with the word; the last of several registers has its own.
            reg [WIDTH-1:0] word, passed, last;
            reg moved;
            always @(posedge clka) begin
                if (rstb) word <= {WIDTH{1'b0}};
                else if (enb) word <= cells[addrb];
                moved <= enb;
                if (moved) passed <= word;
                if (rstb) last <= {WIDTH{1'b0}};
                else if (regceb) last <= READ_LATENCY_B == 2 ? word : passed;
            end
            assign doutb = READ_LATENCY_B == 1 ? word : last;
        end
    endgenerate

    assign sbiterrb = 1'b0;
    assign dbiterrb = 1'b0;
endmodule
