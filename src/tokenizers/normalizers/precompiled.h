#pragma once

#include "tokenizers/definition/component.h"
#include "tokenizers/normalizers/normalizer.h"

namespace posenc::text {

/// Precompiled: the rules of a SentencePiece model, as `tokenizers` applies them and not as
/// SentencePiece does.
NormalizerPtr make_precompiled(const Component& component);

}  // namespace posenc::text
