#include "models/seq2seq/vocabulary.h"

#include <algorithm>
#include <array>
#include <set>

#include "models/config/model_folder.h"

namespace posenc {
namespace {

// The index of an entry, or that of none.
std::size_t entry_index(const io::TensorSource& source, const std::string& name) {
  const auto* const entry = find_entry(source, name);
  return entry == nullptr ? source.entries().size()
                          : static_cast<std::size_t>(entry - source.entries().data());
}

// The entry that replaces absent ones, or none.
std::size_t replacement(const io::TensorSource& source, const VocabularyNames& names) {
  const std::size_t none = source.entries().size();
  if (!names.are_tied) return names.shared.empty() ? none : entry_index(source, names.shared);
  for (const std::string& name : names.order)
    if (const std::size_t found = entry_index(source, name); found != none) return found;
  return none;
}

}  // namespace

Vocabulary::Vocabulary(const io::TensorSource& source, const VocabularyNames& names)
    : SelectedSource(source) {
  const std::size_t none = source.entries().size(), other = replacement(source, names);
  const auto reads = [&](const std::string& name) {
    const std::size_t own = entry_index(source, name);
    if (own != none) return own;
    const auto& order = names.order;
    const bool may_be_other = std::find(order.begin(), order.end(), name) != order.end();
    if (!may_be_other || other == none) throw missing_tensor(source, name);
    return other;
  };
  const std::size_t decoder = reads(names.decoder), head = reads(names.head);
  const std::size_t encoder = names.encoder.empty() ? none : reads(names.encoder);
  const auto are_one = [&](std::size_t a, std::size_t b) {
    if (a == b) return true;
    if (a == none) return false;
    const auto &one = source.entries()[a], &two = source.entries()[b];
    return names.are_tied && one.dtype == two.dtype && one.sizes == two.sizes && source.equal(a, b);
  };
  const bool embeddings = are_one(encoder, decoder), output = are_one(decoder, head);
  tying_ = embeddings ? (output ? Tying::ThreeWay : Tying::EncoderDecoder)
                      : (output ? Tying::DecoderOutput : Tying::None);
  const std::set<std::string> all = {names.shared, names.encoder, names.decoder, names.head};
  for (std::size_t i = 0; i < none; ++i)
    if (all.count(source.entries()[i].name) == 0) select(i, source.entries()[i]);
  // One tensor of the file may be two matrices of the model that no Tying has as one.
  std::set<std::size_t> taken;
  const auto take = [&](std::size_t index, const std::string& name) {
    auto entry = source.entries()[index];
    if (!taken.insert(index).second) entry.name = name == entry.name ? name + " (again)" : name;
    select(index, entry);
    return entry.name;
  };
  if (encoder != none) encoder_ = take(encoder, names.encoder);
  decoder_ = embeddings ? encoder_ : take(decoder, names.decoder);
  head_ = output ? decoder_ : take(head, names.head);
}

KeyMap Vocabulary::keys() const {
  KeyMap keys;
  if (!encoder_.empty()) keys.emplace_back(encoder_, "src_embedding.token_embedding.weight");
  if (decoder_ != encoder_) keys.emplace_back(decoder_, "tgt_embedding.token_embedding.weight");
  if (head_ != decoder_) keys.emplace_back(head_, "final_layer.weight");
  return keys;
}

}  // namespace posenc
