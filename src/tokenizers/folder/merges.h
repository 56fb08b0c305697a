#pragma once

#include "tokenizers/definition/definition.h"

namespace posenc::text {

/// The merges of a vocabulary of SentencePiece's BPE, whose files have none: every split of a token
/// into two tokens, by the id of the token, then the length of the first, as transformers makes
/// them. Throws TokenizerError for a token that is too long.
void make_merges(Definition& definition);

}  // namespace posenc::text
