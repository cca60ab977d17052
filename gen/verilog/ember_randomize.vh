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
`elsif __ICARUS__
    // The cells of a card hold something at power-up, and never X.
    initial begin : anything
        integer i, j;
        reg [(WIDTH + 31) / 32 * 32 - 1:0] word;
        for (i = 0; i < CELLS; i = i + 1) begin
            for (j = 0; j < (WIDTH + 31) / 32; j = j + 1) word[32 * j +: 32] = $urandom;
            cells[i] = word[WIDTH - 1:0];
        end
    end
`endif
