#pragma once

#include <string>

#include "posenc/export.h"
#include "posenc/models/seq2seq.h"

namespace posenc POSENC_EXPORT {

/// A Marian checkpoint, ready for generate().
using MarianModel = Seq2SeqModel;

/// load_seq2seq() of a folder saved by Hugging Face's MarianMTModel, and of no other.
///
/// ```cpp
/// auto marian = posenc::load_marian("opus-mt-en-de");
/// std::vector<torch::Tensor> sequences = {torch::tensor({7, 3, 0}), torch::tensor({5, 0})};
/// auto batch = posenc::functional::pad_sequences(
///     sequences, posenc::functional::PadSequencesOptions().pad_id(marian.pad));
/// auto mask = posenc::AttentionMask::key_padding(batch.mask);
/// auto found = posenc::generate(marian.model, batch.ids, mask, marian.generation);
/// ```
///
/// Errors: those of load_seq2seq(); c10::ValueError for another model type.
///
/// Source: transformers 5.23, models/marian/modeling_marian.py.
MarianModel load_marian(const std::string& folder, const LoadOptions& options = {});

}  // namespace posenc
