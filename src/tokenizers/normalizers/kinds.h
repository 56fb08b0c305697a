#pragma once

// The makers of those normalisers that have sources of their own.

#include "tokenizers/definition/component.h"
#include "tokenizers/normalizers/normalizer.h"

namespace posenc::text {

/// BertNormalizer: cleans the text, puts blanks around Chinese characters, strips accents and
/// lowercases, as far as its options say.
NormalizerPtr make_bert_normalizer(const Component& component);

/// Precompiled: the rules of a SentencePiece model, as `tokenizers` applies them and not as
/// SentencePiece does.
NormalizerPtr make_precompiled(const Component& component);

}  // namespace posenc::text
