#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <sstream>

#include "parallel/collectives.h"
#include "parallel/group_text.h"

namespace posenc::parallel {
namespace {

/// FNV-1a: the same number in every build, unlike std::hash.
int64_t fingerprint(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<int64_t>(hash);
}

/// The texts of all processes, whose lengths all know.
std::vector<std::string> all_gather_texts(const RankGroup& group, const std::string& text,
                                          const std::vector<int64_t>& lengths, const char* caller) {
  const at::Tensor own = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  if (!text.empty()) std::memcpy(own.mutable_data_ptr(), text.data(), text.size());
  const at::Tensor all = all_gather_rows(group, own, lengths, caller);
  const char* next = static_cast<const char*>(all.const_data_ptr());
  std::vector<std::string> texts;
  for (const int64_t length : lengths) {
    texts.emplace_back(next, static_cast<size_t>(length));
    next += length;
  }
  return texts;
}

/// A line as a message shows it; one that a text does not have is "nothing".
std::string shown(const std::string& line, bool there) {
  constexpr size_t kLongest = 200;
  if (!there) return "nothing";
  return "`" + (line.size() > kLongest ? line.substr(0, kLongest) + "..." : line) + "`";
}

/// The first line in which two texts differ.
std::string first_difference(int rank, const std::string& text, const std::string& of_rank_0) {
  std::istringstream left(text);
  std::istringstream right(of_rank_0);
  while (true) {
    std::string a;
    std::string b;
    const bool has_a = static_cast<bool>(std::getline(left, a));
    const bool has_b = static_cast<bool>(std::getline(right, b));
    if (has_a != has_b || a != b || !has_a) {
      return c10::str("Rank ", rank, " has ", shown(a, has_a), ", rank 0 has ", shown(b, has_b));
    }
  }
}

std::string place(const RankGroup& group, const char* caller) {
  return place_text(caller, group.rank(), group.size());
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return text_of(e);
  } catch (...) {
    return "an unknown exception";
  }
}

}  // namespace

void agree_on(const RankGroup& group, const std::string& text, const char* caller) {
  if (group.size() == 1) return;
  // Two numbers from each process, whatever the texts are: sizes never differ, so the engine never
  // aborts. The texts themselves are sent only where they differ.
  const auto length = static_cast<int64_t>(text.size());
  const at::Tensor all =
      all_gather(group, at::tensor({length, fingerprint(text)}, at::kLong), caller);
  const auto* numbers = all.const_data_ptr<int64_t>();
  std::vector<int64_t> lengths;
  bool equal = true;
  for (int rank = 0; rank < group.size(); ++rank) {
    lengths.push_back(numbers[2 * rank]);
    equal = equal && std::equal(numbers, numbers + 2, numbers + 2 * rank);
  }
  if (equal) return;
  const std::vector<std::string> texts = all_gather_texts(group, text, lengths, caller);
  int other = group.rank();
  for (int rank = 0; texts[other] == texts[0] && rank < group.size(); ++rank) other = rank;
  throw GroupError(GroupErrorCode::Disagree, group.rank(),
                   c10::str(place(group, caller),
                            "all processes must have the same model, options "
                            "and version of posenc. ",
                            first_difference(other, texts[other], texts[0])));
}

void all_or_none(const RankGroup& group, const std::function<void()>& work, const char* caller) {
  std::exception_ptr error;
  std::string message;
  try {
    if (work) work();
  } catch (...) {
    error = std::current_exception();
    message = message_of(error) + " ";  // never empty: the length says whether there is one
  }
  try {
    const std::vector<int64_t> lengths =
        all_gather_lengths(group, static_cast<int64_t>(message.size()), caller);
    const auto failed =
        std::find_if(lengths.begin(), lengths.end(), [](int64_t length) { return length > 0; });
    if (failed == lengths.end()) return;
    const std::vector<std::string> messages = all_gather_texts(group, message, lengths, caller);
    if (!error) {
      const auto rank = failed - lengths.begin();
      const std::string& text = messages[static_cast<size_t>(rank)];
      throw GroupError(GroupErrorCode::PeerFailed, group.rank(),
                       c10::str(place(group, caller), "rank ", rank,
                                " failed. Got: ", text.substr(0, text.size() - 1)));
    }
  } catch (...) {
    if (!error) throw;  // else this process's own error is the more useful one
  }
  std::rethrow_exception(error);
}

}  // namespace posenc::parallel
