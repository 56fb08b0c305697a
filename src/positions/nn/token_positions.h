#pragma once

#include "posenc/positions/nn/token_and_position_embedding.h"

namespace posenc {

/// The row of the first position in the table of an embedding with these options.
int64_t first_position_row(const TokenAndPositionEmbeddingOptions& options);

/// Throws c10::ValueError, naming `module`, for `length` tokens after `offset` others that a table
/// that does not grow has no positions for.
void check_length(const char* module, const TokenAndPositionEmbeddingOptions& options,
                  int64_t length, int64_t offset);

}  // namespace posenc
