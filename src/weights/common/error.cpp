#include "posenc/weights/error.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace posenc {
namespace {

std::string sentence(const std::string& function, const std::string& file,
                     const std::string& tensor, const std::string& reason,
                     const std::string& remedy) {
  std::string out;
  if (!function.empty()) out += "[" + function + "] ";
  if (!file.empty()) out += io::printable(file) + ": ";
  if (!tensor.empty()) out += "tensor " + io::in_quotes(tensor) + " ";
  // A list follows the remedy, which belongs to the line with the rule.
  const std::size_t end = std::min(reason.find('\n'), reason.size());
  out += reason.substr(0, end);
  if (!remedy.empty()) out += (out.empty() || out.back() == ':' ? " " : "; ") + remedy;
  return out + reason.substr(end);
}

const std::string& first_known(const std::string& known, const std::string& other) {
  return known.empty() ? other : known;
}

const std::shared_ptr<const LoadDetails>& no_details() {
  static const auto none = std::make_shared<const LoadDetails>();
  return none;
}

}  // namespace

const char* to_string(WeightsErrorCode code) {
  switch (code) {
    case WeightsErrorCode::NotFound: return "NotFound";
    case WeightsErrorCode::NotRegular: return "NotRegular";
    case WeightsErrorCode::Io: return "Io";
    case WeightsErrorCode::UnknownFormat: return "UnknownFormat";
    case WeightsErrorCode::Unsupported: return "Unsupported";
    case WeightsErrorCode::WholeModule: return "WholeModule";
    case WeightsErrorCode::Truncated: return "Truncated";
    case WeightsErrorCode::Corrupt: return "Corrupt";
    case WeightsErrorCode::LimitExceeded: return "LimitExceeded";
    case WeightsErrorCode::OutOfBounds: return "OutOfBounds";
    case WeightsErrorCode::DuplicateKey: return "DuplicateKey";
    case WeightsErrorCode::Shard: return "Shard";
    case WeightsErrorCode::MissingKeys: return "MissingKeys";
    case WeightsErrorCode::UnexpectedKeys: return "UnexpectedKeys";
    case WeightsErrorCode::ShapeMismatch: return "ShapeMismatch";
    case WeightsErrorCode::DtypeMismatch: return "DtypeMismatch";
    case WeightsErrorCode::TieConflict: return "TieConflict";
    case WeightsErrorCode::Module: return "Module";
  }
  return "?";
}

WeightsError::WeightsError(WeightsErrorCode code, std::string function, std::string file,
                           std::string tensor, std::string reason, std::string remedy,
                           std::shared_ptr<const LoadDetails> details)
    : c10::Error(sentence(function, file, tensor, reason, remedy)),
      code_(code),
      function_(std::move(function)),
      file_(std::move(file)),
      tensor_(std::move(tensor)),
      reason_(std::move(reason)),
      remedy_(std::move(remedy)),
      details_(std::move(details)) {}

WeightsError::WeightsError(WeightsErrorCode code, std::string reason, std::string remedy)
    : WeightsError(code, "", "", "", std::move(reason), std::move(remedy), no_details()) {}

WeightsError WeightsError::in_tensor(const std::string& name) const {
  return {code_, function_, file_, first_known(tensor_, name), reason_, remedy_, details_};
}

WeightsError WeightsError::in_file(const std::string& path) const {
  return {code_, function_, first_known(file_, path), tensor_, reason_, remedy_, details_};
}

WeightsError WeightsError::in_function(const std::string& function) const {
  return {code_, first_known(function_, function), file_, tensor_, reason_, remedy_, details_};
}

WeightsError WeightsError::with_details(LoadDetails details) const {
  auto shared = std::make_shared<const LoadDetails>(std::move(details));
  return {code_, function_, file_, tensor_, reason_, remedy_, std::move(shared)};
}

}  // namespace posenc
