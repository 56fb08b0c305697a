#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace posenc::io {

/// A list that only grows, in large chunks: elements never move, and growing never needs memory for
/// old and new elements at the same time, as a vector would.
template <typename Element>
class ChunkedVector {
 public:
  uint32_t size() const noexcept { return size_; }

  Element& operator[](uint32_t at) { return pieces_[at / kPiece][at % kPiece]; }
  const Element& operator[](uint32_t at) const { return pieces_[at / kPiece][at % kPiece]; }

  void push_back(const Element& element) {
    if (size_ % kPiece == 0) {
      pieces_.push_back(std::make_unique_for_overwrite<Element[]>(kPiece));
    }
    pieces_.back()[size_ % kPiece] = element;
    ++size_;
  }

 private:
  static constexpr uint32_t kPiece = 2048;

  std::vector<std::unique_ptr<Element[]>> pieces_;
  uint32_t size_ = 0;
};

}  // namespace posenc::io
