// The work of one thread on row units: lines to rows, words between rows, rows to lines.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "base/geometry.h"
#include "exec/line_rows.h"

namespace pidcomm {

/// Carries out row units. Keeps the rows of lines that it has loaded in a ring of pages, because
/// the lanes of a line go to several places of the destination.
class RowWorker {
 public:
  /// buffer: bytes_for(messages) bytes.
  RowWorker(const HostPass &pass, std::byte *buffer)
      : messages_(*pass.plan.messages),
        first_source_(messages_.src() / kWordBytes),
        end_source_((messages_.src() + messages_.in_bytes()) / kWordBytes),
        pages_(pages_for(messages_)),
        buffer_(buffer),
        lines_(pass, buffer + pages_ * kPageBytes + kLanes * kChunkRowBytes) {
    if (messages_.row_units().empty()) return;
    keys_.resize(pages_, kNoKey);
    slots_.resize(2 * std::bit_ceil(pages_), kNoSlot);
  }

  /// The pages, the rows of a chunk, and the buffers of the passes.
  static uint64_t bytes_for(const PeMessages &messages) {
    return messages.row_units().empty() ? 0
                                        : pages_for(messages) * kPageBytes +
                                              kLanes * kChunkRowBytes + LineRows::kBufferBytes;
  }
  uint64_t lines_loaded() const { return lines_.lines_loaded(); }

  void run(const RowUnit &unit) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) next_[lane] = unit.first_message[lane];
    for (uint32_t word = unit.first_word; word < unit.end_word;) {
      const uint32_t words = std::min(kChunkWords - word % kChunkWords, unit.end_word - word);
      move_chunk(unit, word, words);
      word += words;
    }
  }

 private:
  static constexpr uint32_t kChunkWords = 256, kPageWords = kRowPageWords, kNoSlot = ~0u;
  // Rows of a chunk are not a power of two apart, because they would compete for a few places in
  // the first-level cache.
  static constexpr std::size_t kPageRowBytes = kPageWords * kWordBytes + kLineBytes,
                               kPageBytes = kLanes * kPageRowBytes,
                               kChunkRowBytes = kChunkWords * kWordBytes + kLineBytes;
  static constexpr uint64_t kNoKey = ~uint64_t{0};

  /// Returns the number of pages that hold the lines of a message to each of 8 lanes.
  static std::size_t pages_for(const PeMessages &messages) {
    return std::clamp<std::size_t>(kLanes * (messages.longest_row_words() / kPageWords + 2), 64,
                                   2048);
  }

  std::byte *chunk_row(uint32_t lane) const {
    return buffer_ + pages_ * kPageBytes + lane * kChunkRowBytes;
  }

  void move_chunk(const RowUnit &unit, uint32_t word, uint32_t words) {
    const uint32_t eg = unit.eg;
    const uint64_t end = uint64_t{word} + words;
    uint64_t covered = 0;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      while (next_[lane] < unit.first_message[lane + 1] && end_of(next_[lane]) <= word)
        ++next_[lane];
      for (uint32_t m = next_[lane]; m < unit.first_message[lane + 1] && message(m).word < end; ++m)
        covered += std::min(end, end_of(m)) - std::max(word, message(m).word);
    }
    if (covered == 0) return;
    if (covered != uint64_t{words} * kLanes)
      lines_.load(eg, word, words, chunk_row(0), kChunkRowBytes, end);
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      for (uint32_t m = next_[lane]; m < unit.first_message[lane + 1] && message(m).word < end;
           ++m) {
        const uint32_t first = std::max(word, message(m).word);
        copy(message(m), first, static_cast<uint32_t>(std::min(end, end_of(m))) - first,
             chunk_row(lane) + (first - word) * kWordBytes);
      }
    std::array<const std::byte *, kLanes> rows;
    for (uint32_t lane = 0; lane < kLanes; ++lane) rows[lane] = chunk_row(lane);
    lines_.store(eg, word, words, rows.data());
  }

  const RowMessage &message(uint32_t number) const { return messages_.row_messages()[number]; }
  uint64_t end_of(uint32_t number) const {
    return uint64_t{message(number).word} + message(number).words;
  }

  /// Copies words of a message to a row.
  void copy(const RowMessage &message, uint32_t first, uint32_t words, std::byte *to) {
    if (message.from_eg == kFillEg) {
      for (uint32_t w = 0; w < words; ++w)
        std::memcpy(to + w * kWordBytes, &message.fill, kWordBytes);
      return;
    }
    for (uint32_t from = message.from_word + (first - message.word); words != 0;) {
      const uint32_t at = from % kPageWords, count = std::min(words, kPageWords - at);
      copy_words(to,
                 page(message.from_eg, from / kPageWords) + message.from_lane * kPageRowBytes +
                     at * kWordBytes,
                 count);
      to += count * kWordBytes;
      from += count;
      words -= count;
    }
  }

  /// Faster than memcpy, which the compiler turns into `rep movsq`.
  static void copy_words(std::byte *to, const std::byte *from, uint32_t words) {
    for (; words >= kStepWords; words -= kStepWords, to += kLineBytes, from += kLineBytes)
      std::memcpy(to, from, kLineBytes);
    for (; words != 0; --words, to += kWordBytes, from += kWordBytes)
      std::memcpy(to, from, kWordBytes);
  }

  /// Returns the rows of a page, from the ring or from MRAM.
  const std::byte *page(uint32_t eg, uint32_t number) {
    const uint64_t key = uint64_t{eg} << 32 | number;
    if (key == last_key_) return last_page_;
    const std::size_t mask = slots_.size() - 1;
    const auto place_of = [&](uint64_t wanted) {
      std::size_t place = (wanted * 0x9E3779B97F4A7C15ull) >> 32 & mask;
      while (slots_[place] != kNoSlot && keys_[slots_[place]] != wanted) place = (place + 1) & mask;
      return place;
    };
    std::size_t place = place_of(key);
    uint32_t slot = slots_[place];
    if (slot == kNoSlot) {
      slot = static_cast<uint32_t>(oldest_++ % pages_);
      if (keys_[slot] != kNoKey) {
        remove(place_of(keys_[slot]), place_of);
        place = place_of(key);
      }
      keys_[slot] = key;
      slots_[place] = slot;
      const uint64_t begin = uint64_t{number} * kPageWords, first = std::max(begin, first_source_),
                     end = std::min(begin + kPageWords, end_source_);
      // The lines behind a page are those of the page that a message needs next.
      lines_.load(eg, first, static_cast<uint32_t>(end - first),
                  buffer_ + slot * kPageBytes + (first - begin) * kWordBytes, kPageRowBytes,
                  end_source_);
    }
    last_key_ = key;
    return last_page_ = buffer_ + slot * kPageBytes;
  }

  /// Removes an entry of the hash table, and moves the entries behind it that it displaced.
  template <class PlaceOf>
  void remove(std::size_t place, const PlaceOf &place_of) {
    const std::size_t mask = slots_.size() - 1;
    keys_[slots_[place]] = kNoKey;
    slots_[place] = kNoSlot;
    for (std::size_t next = (place + 1) & mask; slots_[next] != kNoSlot; next = (next + 1) & mask) {
      const uint32_t slot = slots_[next];
      slots_[next] = kNoSlot;
      slots_[place_of(keys_[slot])] = slot;
    }
  }

  const PeMessages &messages_;
  const uint64_t first_source_, end_source_;  // words of the source window
  const std::size_t pages_;
  std::byte *const buffer_;
  LineRows lines_;
  std::vector<uint64_t> keys_;   // by page: its entangled group and number
  std::vector<uint32_t> slots_;  // a hash table of pages, by key
  uint64_t oldest_ = 0, last_key_ = kNoKey;
  const std::byte *last_page_ = nullptr;
  std::array<uint32_t, kLanes> next_{};  // by lane: the first message that may not have ended
};

}  // namespace pidcomm
