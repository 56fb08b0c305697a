#include "weights/torch/zip/archive.h"

#include "base/text.h"

namespace posenc::io {
namespace {

constexpr uint64_t kLongestWord = 64;
constexpr const char* kRemedy = "save model.state_dict() with torch.save instead";

std::string root_of(const ZipIndex& index) {
  if (index.records().empty()) return "";
  const std::string_view first = index.records().front().name;
  return std::string(first.substr(0, first.find('/') + 1));  // empty if there is no slash
}

}  // namespace

Archive::Archive(const InputFile& file) : index_(file), root_(root_of(index_)), format_(detect()) {
  check_byte_order();
}

const ZipRecord* Archive::find(const std::string& name) const { return index_.find(root_ + name); }

std::string Archive::read(const std::string& name, uint64_t most) const {
  const ZipRecord* record = find(name);
  if (record == nullptr) {
    throw WeightsError(WeightsErrorCode::Corrupt, "lacks its record " + in_quotes(name));
  }
  if (record->bytes > most) {
    throw WeightsError(WeightsErrorCode::LimitExceeded,
                       "must have at most " + std::to_string(most) + " bytes in its record " +
                           in_quotes(name) + ". Got " + std::to_string(record->bytes));
  }
  return index_.read(*record);
}

std::string_view Archive::below_root(const ZipRecord& record) const {
  return record.name.starts_with(root_) ? record.name.substr(root_.size()) : std::string_view();
}

WeightsFormat Archive::detect() const {
  if (find("archive_format") != nullptr) {
    const std::string kind = read("archive_format", kLongestWord);
    if (kind == "pt2") return WeightsFormat::Pt2;
    throw WeightsError(WeightsErrorCode::Unsupported,
                       "is an archive of the unknown kind " + in_quotes(kind));
  }
  if (find(".data/extern_modules") != nullptr) {
    throw WeightsError(WeightsErrorCode::Unsupported, "is a torch.package", kRemedy);
  }
  if (find("data.pkl") != nullptr) {
    return find("constants.pkl") != nullptr ? WeightsFormat::TorchScript : WeightsFormat::TorchSave;
  }
  if (index_.find("serialized_state_dict.pt") != nullptr) {
    throw WeightsError(WeightsErrorCode::Unsupported,
                       "is an exported program of a PyTorch before 2.8",
                       "save it again with a newer PyTorch, or save its state_dict");
  }
  if (find("model.json") != nullptr) {
    throw WeightsError(WeightsErrorCode::Unsupported, "is TorchScript of a PyTorch before 1.4",
                       "save it again with a newer PyTorch");
  }
  throw WeightsError(WeightsErrorCode::UnknownFormat, "is a zip archive, but not one of PyTorch",
                     kRemedy);
}

void Archive::check_byte_order() const {
  if (find("byteorder") == nullptr) return;  // before PyTorch 2.1
  const std::string order = read("byteorder", kLongestWord);
  if (order == "little") return;
  if (order == "big") {
    throw WeightsError(WeightsErrorCode::Unsupported, "was saved on a big-endian machine",
                       "load it with Python and save it again on a little-endian one");
  }
  throw WeightsError(WeightsErrorCode::Corrupt,
                     "must have little or big as its byteorder. Got " + in_quotes(order));
}

}  // namespace posenc::io
