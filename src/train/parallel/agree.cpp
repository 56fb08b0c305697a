#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <sstream>

#include "train/parallel/collectives.h"
#include "train/parallel/fingerprint.h"
#include "train/parallel/group_text.h"

namespace posenc::parallel {
namespace {

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

std::string prefix_of(const RankGroup& group, const char* caller) {
  return rank_prefix(caller, group.rank(), group.size());
}

/// What a process is about to send to the others.
enum class Notice : int64_t { Number, Text, Failure };

const char* notice_text(int64_t notice) {
  switch (static_cast<Notice>(notice)) {
    case Notice::Number: return "sends a number";
    case Notice::Text: return "compares its model or options";
    case Notice::Failure: return "reports whether it failed";
  }
  return "sends something else";
}

/// The same size whatever a process is doing, because the engine aborts the process where sizes
/// differ. What follows it has other sizes.
struct Header {
  int64_t notice;
  int64_t numbers[2];
  char caller[104];  // with zeros to its end
};
static_assert(sizeof(Header) == 128);

std::string action_text(size_t rank, const Header& header) {
  return c10::str("rank ", rank, " is in ", header.caller, " and ", notice_text(header.notice));
}

/// The headers of all processes. Throws GroupError(Disagree) on each of them unless all do the
/// same.
std::vector<Header> all_gather_headers(const RankGroup& group, Notice notice, int64_t first,
                                       int64_t second, const char* caller) {
  Header own{static_cast<int64_t>(notice), {first, second}, {}};
  std::strncpy(own.caller, caller, sizeof(own.caller) - 1);
  const at::Tensor sent = at::empty({sizeof(Header)}, at::kByte);
  std::memcpy(sent.mutable_data_ptr(), &own, sizeof(own));
  const at::Tensor received = all_gather(group, sent, caller);
  std::vector<Header> headers(static_cast<size_t>(group.size()));
  std::memcpy(headers.data(), received.const_data_ptr(), headers.size() * sizeof(Header));
  for (size_t rank = 1; rank < headers.size(); ++rank) {
    const bool same = headers[rank].notice == headers[0].notice &&
                      std::strcmp(headers[rank].caller, headers[0].caller) == 0;
    if (same) continue;
    throw GroupError(GroupErrorCode::Disagree, group.rank(),
                     c10::str(prefix_of(group, caller),
                              "all processes must call the same functions in the same order. Got: ",
                              action_text(0, headers[0]), ", ", action_text(rank, headers[rank])));
  }
  return headers;
}

std::vector<int64_t> first_numbers(const std::vector<Header>& headers) {
  std::vector<int64_t> numbers;
  for (const Header& header : headers) numbers.push_back(header.numbers[0]);
  return numbers;
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

int64_t fingerprint(const std::string& text) {
  Fingerprint hash;
  hash.add(text);
  return static_cast<int64_t>(hash.value());
}

std::vector<int64_t> all_gather_numbers(const RankGroup& group, int64_t number,
                                        const char* caller) {
  return first_numbers(all_gather_headers(group, Notice::Number, number, 0, caller));
}

void agree_on(const RankGroup& group, const std::string& text, const char* caller) {
  if (group.size() == 1) return;
  // The texts themselves are sent only where their lengths or fingerprints differ.
  const auto headers = all_gather_headers(group, Notice::Text, static_cast<int64_t>(text.size()),
                                          fingerprint(text), caller);
  const bool equal = std::all_of(headers.begin(), headers.end(), [&](const Header& header) {
    return std::equal(header.numbers, header.numbers + 2, headers.front().numbers);
  });
  if (equal) return;
  const std::vector<std::string> texts =
      all_gather_texts(group, text, first_numbers(headers), caller);
  int other = group.rank();
  for (int rank = 0; texts[other] == texts[0] && rank < group.size(); ++rank) other = rank;
  throw GroupError(GroupErrorCode::Disagree, group.rank(),
                   c10::str(prefix_of(group, caller),
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
    const std::vector<int64_t> lengths = first_numbers(all_gather_headers(
        group, Notice::Failure, static_cast<int64_t>(message.size()), 0, caller));
    const auto failed =
        std::find_if(lengths.begin(), lengths.end(), [](int64_t length) { return length > 0; });
    if (failed == lengths.end()) return;
    const std::vector<std::string> messages = all_gather_texts(group, message, lengths, caller);
    if (!error) {
      const auto rank = failed - lengths.begin();
      const std::string& text = messages[static_cast<size_t>(rank)];
      throw GroupError(GroupErrorCode::PeerFailed, group.rank(),
                       c10::str(prefix_of(group, caller), "rank ", rank,
                                " failed. Got: ", text.substr(0, text.size() - 1)));
    }
  } catch (...) {
    if (!error) throw;  // else this process's own error is the more useful one
  }
  std::rethrow_exception(error);
}

}  // namespace posenc::parallel
