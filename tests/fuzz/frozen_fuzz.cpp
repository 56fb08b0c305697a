// The options in the metadata of a frozen model's file: a byte, which kind of options, and JSON
// that is merged into those of a model, since options without all of their fields are refused
// first. Whatever can be read is written as it was read.
#include <string>

#include "fuzz/check.h"
#include "models/frozen/options_json.h"
#include "posenc/inference/freeze_options.h"
#include "posenc/models/classifier.h"
#include "posenc/models/decoder.h"
#include "posenc/transformer/transformer.h"
#include "weights/common/json.h"

namespace posenc::testing {
namespace {

using Json = nlohmann::json;

template <typename Options>
void read_as(const Options& base, const std::string& text) {
  static const Json whole = json_of(base);
  Json json = whole, written;
  try {
    json.merge_patch(io::json_tree<Json>(text, "posenc.options"));
    written = json_of(options_from<Options>(json));
  } catch (const c10::Error&) {
    return;
  }
  promise(json_of(options_from<Options>(written)) == written, "options are read as written");
}

void read_options(unsigned kind, const std::string& text) {
  static const EncoderOptions encoder(EncoderEmbeddingsOptions(12, 8),
                                      TransformerEncoderOptions(TransformerLayerOptions(8, 2), 1));
  switch (kind % 6) {
    case 0: return read_as(FreezeOptions(), text);
    case 1: return read_as(encoder, text);
    case 2:
      return read_as(ClassifierOptions(encoder, head::Kind::Sequence, EncoderHeadOptions(8, 3)),
                     text);
    case 3: return read_as(DecoderOptions(encoder), text);
    case 4: return read_as(TransformerOptions(12, 12), text);
    default: return read_as(encoder.encoder(), text);
  }
}

}  // namespace
}  // namespace posenc::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  posenc::testing::read_options(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
