#pragma once

#include "posenc/positions/nn/token_and_position_embedding.h"

namespace posenc {

/// The row of the first position in the table of an embedding with these options.
int64_t first_position_row(const TokenAndPositionEmbeddingOptions& options);

/// Whether forward() leaves positions to the position_encoding, which knows no position_offset.
bool leaves_positions(const TokenAndPositionEmbeddingImpl& embedding);

/// Whether the positions of forward(), if there are any, are rows of the position_embedding;
/// otherwise they are those of the position_encoding.
bool reads_trained_rows(const TokenAndPositionEmbeddingImpl& embedding);

/// Throws c10::ValueError, naming `module`, for `length` tokens after `offset` others that a table
/// that does not grow has no positions for.
void check_length(const char* module, const TokenAndPositionEmbeddingOptions& options,
                  int64_t length, int64_t offset);

}  // namespace posenc
