#pragma once

#include "tokenizers/definition/component.h"
#include "tokenizers/normalizers/normalizer.h"

namespace posenc::text {

/// BertNormalizer: cleans the text, puts blanks around Chinese characters, strips accents and
/// lowercases, as far as its options say.
NormalizerPtr make_bert_normalizer(const Component& component);

}  // namespace posenc::text
