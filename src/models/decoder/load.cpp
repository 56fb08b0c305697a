// load_decoder(): the encoder below, and the output layer, which may be its table of tokens.

#include <c10/util/StringUtil.h>

#include <algorithm>

#include "models/config/model_folder.h"
#include "models/decoder/config.h"
#include "models/decoder/parts.h"
#include "models/encoder/folder.h"
#include "models/encoder/names.h"
#include "posenc/core/skip_init.h"
#include "weights/load/key_map.h"

namespace posenc {
namespace {

// The output layer in the file, by one of its names; empty if there is none.
std::string head_in(const EncoderFolder& open) {
  const DecoderStructure& structure = *open.config.model.decoder;
  for (const std::string head : {structure.head, structure.other_head}) {
    const std::string name = open.options.prefix() + head;
    if (!head.empty() && find_entry(open.source, name + ".weight") != nullptr) return name;
  }
  return "";
}

bool has_table(const EncoderFolder& open) {
  const auto names = encoder_token_table_names(open.config, open.prefix);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return find_entry(open.source, name) != nullptr;
  });
}

// The encoder of a file that may have the table of a tied model as its output layer alone.
Encoder encoder_of(EncoderFolder& open, const std::string& head, bool tied) {
  if (!tied || head.empty() || has_table(open)) return encoder_in(open, "model.");
  const std::size_t given = open.options.prefix().size();
  const std::string table = encoder_token_table_names(open.config, open.prefix).front();
  const io::RenamedSource renamed(open.source, open.options.prefix(),
                                  {{head.substr(given) + ".weight", table.substr(given)}});
  return encoder_in({open, renamed}, "model.");
}

void copy_head(const EncoderFolder& open, const std::string& name, const char* own,
               const at::Tensor& to) {
  const auto* const entry = find_entry(open.source, name);
  if (entry == nullptr) throw missing_tensor(open.source, name);
  io::refuse_unreadable_entry(*entry);
  if (!at::isFloatingType(entry->dtype))
    throw WeightsError(
        WeightsErrorCode::DtypeMismatch,
        "must be floating-point numbers. Got " + std::string(c10::toString(entry->dtype)))
        .in_tensor(name);
  if (entry->sizes != to.sizes().vec())
    throw WeightsError(WeightsErrorCode::ShapeMismatch, "must be (" + c10::Join(", ", to.sizes()) +
                                                            "), the vocabulary by the "
                                                            "width of the model. Got (" +
                                                            c10::Join(", ", entry->sizes) + ")")
        .in_tensor(name);
  const torch::NoGradGuard no_grad;
  open.source.copy_to(static_cast<std::size_t>(entry - open.source.entries().data()), to);
  open.leftovers.add_read(name, std::string("lm_head.") + own);
}

Decoder decoder_in(EncoderFolder& open) {
  open.be_strict();
  const std::string first = open.options.prefix() + open.config.model.decoder->head;
  DecoderOptions options = decoder_options_of(open.config);
  if (options.tied()) keep_tied_output(open, first + ".weight");
  const std::string head = head_in(open);
  if (!options.tied() && head.empty()) throw missing_tensor(open.source, first + ".weight");
  open.config.options = options.model();
  const Encoder encoder = encoder_of(open, head, options.tied());
  options.model(encoder->options);
  const at::Tensor& table = encoder->embeddings->tokens->weight;
  options.tied(options.tied() && (head.empty() || !differs(open, head + ".weight", table)));
  const SkipInit skip;
  Decoder model(options);
  model->model =
      std::dynamic_pointer_cast<EncoderImpl>(model->replace_module("model", encoder.ptr()));
  const std::string name = head.empty() ? first : head;
  if (options.tied()) {
    model->lm_head->tie(encoder->embeddings->tokens);
    if (!head.empty()) open.leftovers.add_read(head + ".weight");
  } else {
    copy_head(open, name + ".weight", "weight", model->lm_head->weight);
  }
  if (options.head_bias()) copy_head(open, name + ".bias", "bias", model->lm_head->bias);
  check_finite(
      open.caller, *model->lm_head, open.path,
      [&](const std::string& own) { return name + "." + own; },
      [](const std::string&) { return false; });
  model->eval();
  return model;
}

}  // namespace

Decoder load_decoder_for(const char* caller, const std::string& folder,
                         const LoadOptions& options) {
  Decoder model{nullptr};
  read_encoder_folder(
      caller, folder, options, [&](EncoderFolder& open) { model = decoder_in(open); },
      decoder_part);
  return model;
}

Decoder load_decoder(const std::string& folder, const LoadOptions& options) {
  return load_decoder_for("load_decoder", folder, options);
}

}  // namespace posenc
